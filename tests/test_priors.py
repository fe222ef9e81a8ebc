import json
from dataclasses import replace

import numpy as np
import pytest

from denoiser import available_priors, load_prior, save_prior
from denoiser.gsm import GSM


def test_published_numbers():
    pairwise, foe = load_prior("pairwise"), load_prior("foe3x3")
    assert pairwise.experts[0].precision == 0.003228502953588
    assert pairwise.experts[0].weights[3] == 0.234096619655871
    assert [f.tolist() for f in pairwise.filters] == [[[1, -1]], [[1], [-1]]]
    assert pairwise.padding == 5
    assert foe.padding == 9
    assert len(foe.filters) == 8
    # J column 3, pixel 2 of 9 column-major is row 1, column 0; convolution turns it by 180 degrees
    mean = np.mean([0.33350467989282695, -0.39143598361584075, 0.059379573962542231, -0.41185391345622513,
                    0.42679875199883544, -0.018312087046211012, 0.077974307658704056, -0.035076632506394922,
                    -0.040978696888235966])  # fmt: skip
    assert foe.filters[2][1, 2] == pytest.approx(-0.39143598361584075 - mean, abs=1e-15)
    for prior in (pairwise, foe):
        assert "CVPR 2010" in prior.citation
        for filter_, expert in zip(prior.filters, prior.experts, strict=True):
            assert abs(filter_.sum()) < 1e-12
            assert expert.weights.sum() == pytest.approx(1)
            assert np.allclose(np.log(expert.scales), [-9, -7, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 9])


def test_structure():
    pairwise, foe = load_prior("pairwise"), load_prior("foe3x3")
    assert set(pairwise.factors) == {((0, 1),), ((0, -1),), ((1, 0),), ((-1, 0),)}
    assert pairwise.colours == 2
    assert len(foe.factors) == 9
    assert all(len(factor) == 8 for factor in foe.factors)
    assert len(foe.blanket) == 24
    assert foe.colours == 9


def test_equal_colours_never_share_a_clique(prior):
    colours = prior.colouring((11, 13))
    assert set(np.unique(colours)) == set(range(prior.colours))
    for (row, column), colour in np.ndenumerate(colours):
        for dr, dc in prior.blanket:
            r, c = row + dr, column + dc
            if 0 <= r < 11 and 0 <= c < 13:
                assert colours[r, c] != colour


def _with_other_scales(prior):
    """The same prior, but every expert has scales of its own, and another number of them."""
    experts = [GSM(e.weights[k:], e.scales[k:] * (1 + k / 3), e.precision) for k, e in enumerate(prior.experts)]
    return replace(prior, experts=tuple(experts))


@pytest.mark.parametrize("edit", [lambda prior: prior, _with_other_scales])
def test_save_and_load_again(prior, tmp_path, edit):
    prior = edit(prior)
    save_prior(prior, tmp_path / "copy.json")
    copy = load_prior(tmp_path / "copy.json")
    for a, b in zip(prior.experts, copy.experts, strict=True):
        assert np.array_equal(a.scales, b.scales)
    assert copy.fingerprint == prior.fingerprint  # filters, experts, padding and epsilon, to the last bit
    assert (copy.name, copy.citation) == (prior.name, prior.citation)


@pytest.mark.parametrize("scales", [None, [], [0.0] * 15, [1e30] * 15, [[1.0]], "many", [1.0] * 3])
def test_bad_scales_are_one_clear_line(prior, tmp_path, scales):
    save_prior(prior, tmp_path / "copy.json")
    document = json.loads((tmp_path / "copy.json").read_text())
    document["filters"][-1]["scales"] = scales
    (tmp_path / "copy.json").write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"copy\.json: filters\[\d\]\.(scales|weights) must [^\n]*$"):
        load_prior(tmp_path / "copy.json")


def test_a_clique_is_where_the_taps_are():
    prior = load_prior("pairwise")
    wide = replace(prior, filters=(np.array([[0.0, 0, 0, 0], [0, 1, -1, 0]]), prior.filters[1]))
    assert wide.fingerprint == prior.fingerprint
    with pytest.raises(ValueError, match="a tap that is not 0"):
        replace(prior, filters=(np.zeros((1, 2)), prior.filters[1]))


def _change(**changes):
    def edit(document):
        for key, value in changes.items():
            document["filters"][0][key] = value
        return document

    return edit


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda d: [], "format"),
        (lambda d: {**d, "version": 3}, "version must be 1 or 2, got 3"),
        (lambda d: {**d, "filters": []}, "at least one filter"),
        (lambda d: {**d, "log_scales": [[1]]}, "log_scales"),
        (lambda d: {**d, "log_scales": "many"}, "log_scales"),
        (lambda d: {**d, "epsilon": -1}, "epsilon must be >= 0"),
        (lambda d: {**d, "padding": 2.5}, "padding"),
        (lambda d: {**d, "padding": None}, "padding"),
        (_change(weights=[0.5, 0.5]), "weights must have 15 entries"),
        (_change(weights=[-1.0] + [0.1] * 14), "weights must be >= 0"),
        (_change(weights=[float("nan")] * 15), "weights must be finite"),
        (_change(precision=0), "precision must be > 0"),
        (_change(precision="high"), "precision must be a finite number"),
        (_change(taps=[[1, -1], [1]]), "taps must be numbers in rows of equal length"),
        (_change(taps=[1, -1]), "taps must be a matrix"),
        (_change(taps=[[0, 0]]), "taps"),
    ],
)
def test_a_bad_file_is_one_clear_line(tmp_path, edit, message):
    document = edit(json.loads(available_priors()["pairwise"].read_text()))
    file = tmp_path / "bad.json"
    file.write_text(json.dumps(document))
    with pytest.raises(ValueError, match=r"bad\.json") as caught:
        load_prior(file)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"not json", b"\xff\xfe\x00", b"[" * 100_000])
def test_not_json(tmp_path, content):
    file = tmp_path / "bad.json"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.json: not a readable JSON model file"):
        load_prior(file)


def test_unknown_name():
    with pytest.raises(ValueError, match="prior must be one of foe3x3, pairwise"):
        load_prior("nothing")

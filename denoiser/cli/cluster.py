"""`--scheduler`: a Dask cluster by the address of its scheduler."""

from __future__ import annotations

import logging
from importlib.util import find_spec

from denoiser.executors import Cluster


def connect(address: str) -> Cluster:
    """The cluster, without the log lines of Dask: what goes wrong is said once, in our own words."""
    if find_spec("distributed") is not None:
        import distributed  # noqa: F401, it makes its loggers when it is imported

        for name in list(logging.root.manager.loggerDict):
            if name.split(".")[0] == "distributed":
                logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return Cluster(address)

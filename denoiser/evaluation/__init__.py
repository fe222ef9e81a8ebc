"""Images x methods x noise levels x seeds -> rows, on any executor; and what the rows say.

plan.py     what there is to do            averages.py means and paired differences
work.py     one row                        plots.py    calibration, speed against quality
loop.py     all rows, on any executor      table1.py   the paper's table beside ours
rows.py     rows and the files of rows
"""

from denoiser.evaluation.loop import Step, evaluate, run_cases
from denoiser.evaluation.plan import find_images, load_truths, plan
from denoiser.evaluation.rows import Row, read_rows, to_csv, to_json
from denoiser.evaluation.averages import Summary, summary

__all__ = [
    "Row",
    "Step",
    "Summary",
    "evaluate",
    "find_images",
    "load_truths",
    "plan",
    "read_rows",
    "run_cases",
    "summary",
    "to_csv",
    "to_json",
]

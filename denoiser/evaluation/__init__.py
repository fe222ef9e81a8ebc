"""Images x methods x noise levels x seeds -> rows, on any executor; and what the rows say.

plan.py     what there is to do            rows.py     rows and the files of rows
work.py     one row                        averages.py means and paired differences
loop.py     all rows, on any executor
"""

from denoiser.evaluation.averages import Summary, summary
from denoiser.evaluation.loop import Step, evaluate, run_cases
from denoiser.evaluation.plan import find_images, load_truths, make_plan, parse_method
from denoiser.evaluation.rows import Row, read_rows, to_csv, to_json

__all__ = [
    "Row",
    "Step",
    "Summary",
    "evaluate",
    "find_images",
    "load_truths",
    "make_plan",
    "parse_method",
    "read_rows",
    "run_cases",
    "summary",
    "to_csv",
    "to_json",
]

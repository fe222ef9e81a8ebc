"""`python -m denoiser` is the `denoise` command."""

import sys

from denoiser.cli import main

sys.exit(main())

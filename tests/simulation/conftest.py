"""The checkers of what clients saw judge simulated clients, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "reliability"))

"""The lakejoin command as a Spark application, on any master:

    spark-submit --master MASTER lake/cli/submit/job.py [--config FILE] [--run NAME] refresh q20

It has the same arguments and results as the command.
"""

from __future__ import annotations

from lake.cli.app import main

if __name__ == "__main__":
    main()

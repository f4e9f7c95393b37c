"""The lakejoin command as a Spark application, on any master:

    spark-submit --master MASTER spark_jobs/job.py [--config FILE] [--run NAME] refresh q20

It takes what the command takes and answers as it does: one set of verbs, tried by hand and run by a scheduler.
"""

from __future__ import annotations

from lake.cli import main

if __name__ == "__main__":
    main()

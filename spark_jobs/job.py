"""The lakejoin command as a Spark application: `spark-submit --master MASTER spark_jobs/job.py [--config FILE] refresh q20`."""

from __future__ import annotations

from lake.cli.app import main

if __name__ == "__main__":
    main()

"""What a training leaves behind: one folder per run, readable while it is written and after.

run.json          what ran, on what, and how it ended (`information.RunInformation`)
scalars/          a table of named numbers per step (`table.py`)
statistics/       a table of the tensors' statistics, at the steps at which they were looked at
alerts.jsonl      one object per line, appended
scalars.parquet   the scalars again for other tools, written at the end (extra `sql`)

`RunWriter` writes such a folder, `Run` reads it with numpy alone, and `run_script` runs an
unchanged script and says when a framework has been imported, so that it can be watched.
"""

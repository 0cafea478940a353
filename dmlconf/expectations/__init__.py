"""Expectations of cases: recorded, filled into case files, and checked against the reference.

`recorder` makes a recording, and `renewal` updates the files of an earlier recording. `into_cases`
writes outputs into case files. `checked` finds expectations that the reference contradicts, and
`valid_files` remembers valid files.
"""

"""From case files to planned cases: schemas, matrices, and files that were checked before."""

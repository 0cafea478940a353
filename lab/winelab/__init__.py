"""The Wine lab: Windows CPython and Microsoft's DirectML.dll on Linux, for dmlconf's own use."""

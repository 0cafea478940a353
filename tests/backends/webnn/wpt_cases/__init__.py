"""The web-platform-tests of WebNN as cases of DirectML's operators."""

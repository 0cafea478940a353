"""WebNN's tests in web-platform-tests (WPT) as cases of DirectML's operators."""

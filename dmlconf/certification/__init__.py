"""Make, sign and verify certificates, and read the profiles that say what they must hold."""

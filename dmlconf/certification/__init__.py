"""Makes, signs and verifies certificates, and reads the profiles that say what they must hold."""

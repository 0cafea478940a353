"""The digest of a profile, by which a certificate names the exact demands it was made for."""

from __future__ import annotations

from hashlib import sha256

from dmlconf.certification.json_text import canonical_json
from dmlconf.certification.profiles import Profile

__all__ = ["profile_digest"]


def profile_digest(profile: Profile) -> str:
    """Return the SHA-256 of which cases and verdicts a profile demands, in hexadecimal.

    How many may be waived is not among them: each verifier may have a limit of their own.
    """
    statuses = {
        str(status): None if kinds is None else sorted(kinds)
        for status, kinds in profile.statuses.items()
    }
    demands = {
        "name": profile.name,
        "feature_level": str(profile.feature_level),
        "operators": None if profile.operators is None else sorted(profile.operators),
        "kinds": None if profile.kinds is None else sorted(profile.kinds),
        "left_out": sorted(profile.left_out),
        "parts": sorted(profile.parts),
        "optional_data_types": sorted(profile.optional_data_types),
        "statuses": statuses,
    }
    return sha256(canonical_json(demands)).hexdigest()

"""Certification: profiles, waivers, and certificates that another party can check."""

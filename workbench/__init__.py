"""What people and agents touch: commands, screens, review, headless sessions, bridges and analysis."""

__version__ = "0.1.0"

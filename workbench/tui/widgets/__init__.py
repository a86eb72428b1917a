"""The panels: each draws one part of the view."""

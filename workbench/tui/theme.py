"""The themes: our own dark and light, the terminal's own colours, and high contrast."""

from __future__ import annotations

import os
from collections.abc import Mapping

from textual.theme import Theme

THEME_VARIABLE = "REBENCH_THEME"


def _theme(name: str, *, dark: bool, ansi: bool = False, **tones: str) -> Theme:
    """Build a theme; `tones` are the stylesheet's own variables."""
    return Theme(
        name=name,
        primary=tones["accent"],
        secondary=tones["reference"],
        accent=tones["accent"],
        warning=tones["warn"],
        error=tones["bad"],
        success=tones["good"],
        foreground=tones["ink"],
        background=tones["paper"],
        surface=tones["paper"],
        panel=tones["raised"],
        boost=tones["raised"],
        dark=dark,
        ansi=ansi,
        variables={f"wb-{name}": colour for name, colour in tones.items()}
        | {
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "block-cursor-background": tones["cursor"],
            "block-cursor-foreground": tones["ink"],
            "block-cursor-text-style": "none",
            "input-selection-background": tones["cursor"],
            "footer-background": tones["paper"],
            "border": tones["accent"],
            "border-blurred": tones["faint"],
            "scrollbar": tones["faint"],
            "scrollbar-hover": tones["muted"],
            "scrollbar-active": tones["muted"],
            "scrollbar-background": tones["paper"],
            "scrollbar-background-hover": tones["paper"],
            "scrollbar-background-active": tones["paper"],
            "scrollbar-corner-color": tones["paper"],
        },
    )


DARK = _theme(
    "dark", dark=True, paper="#101318", raised="#191d24", ink="#d3d7de", strong="#f2f4f7", muted="#8b94a1",
    faint="#3a414c", label="#a3b4c9", accent="#7fb0e0", good="#8cbf7f", warn="#e0b060", bad="#ee7d7d",
    star="#edc567", reference="#b79fd8", cursor="#27303d", band="#101318", spark="#53647a",
)  # fmt: skip
LIGHT = _theme(
    "light", dark=False, paper="#fbfaf7", raised="#f0eee8", ink="#2a2e34", strong="#0e1013", muted="#656c76",
    faint="#cdc9bf", label="#47596e", accent="#2563a0", good="#2f7a39", warn="#8f5f00", bad="#b3261e",
    star="#9a6a00", reference="#6f4ba8", cursor="#dfe6ee", band="#fbfaf7", spark="#9fb0c4",
)  # fmt: skip
CONTRAST = _theme(
    "contrast", dark=True, paper="#000000", raised="#000000", ink="#ffffff", strong="#ffffff", muted="#e0e0e0",
    faint="#9a9a9a", label="#ffffff", accent="#5cd6ff", good="#5dff7f", warn="#ffd21f", bad="#ff8a8a",
    star="#ffe14d", reference="#e3b3ff", cursor="#00408f", band="#000000", spark="#5cd6ff",
)  # fmt: skip
TERMINAL = _theme(
    "terminal", dark=True, ansi=True, paper="ansi_default", raised="ansi_default", ink="ansi_default",
    strong="ansi_default", muted="ansi_default", faint="ansi_bright_black", label="ansi_default",
    accent="ansi_blue", good="ansi_green", warn="ansi_yellow", bad="ansi_red", star="ansi_yellow",
    reference="ansi_magenta", cursor="ansi_bright_black", band="ansi_black", spark="ansi_blue",
)  # fmt: skip

THEMES: tuple[Theme, ...] = (DARK, LIGHT, TERMINAL, CONTRAST)
NAMES: tuple[str, ...] = tuple(theme.name for theme in THEMES)


class ThemeUnknown(ValueError):
    """No theme has that name; the message lists those there are."""


def chosen(wanted: str | None, environ: Mapping[str, str] = os.environ) -> str:
    """Return the theme to begin with: asked for, from `$REBENCH_THEME`, else dark; `NO_COLOR` wins over all.

    Raises:
        ThemeUnknown: there is none of that name.
    """
    if environ.get("NO_COLOR"):
        return TERMINAL.name
    name = wanted or environ.get(THEME_VARIABLE) or DARK.name
    if name not in NAMES:
        raise ThemeUnknown(f"no theme is called {name!r}; there are {', '.join(NAMES)}")
    return name

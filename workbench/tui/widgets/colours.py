"""Asks the stylesheet once what each tone looks like, on behalf of every panel."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.widget import Widget

from workbench.ink.lines import Tone


class Colours(Widget):
    """Never shown. Tones as component classes of every panel would be resolved some hundred times before the first paint."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"tone--{tone.value}" for tone in Tone}
    DEFAULT_CSS = "Colours { display: none; }"

    def __init__(self) -> None:
        super().__init__(markup=False)
        self._known: dict[Tone, Style] = {}

    def style(self, tone: Tone) -> Style:
        """Return the tone's own style, to be laid over a widget's."""
        style = self._known.get(tone)
        if style is None:
            style = self._known[tone] = self.get_component_styles(f"tone--{tone.value}").partial_rich_style
        return style

    def notify_style_update(self) -> None:
        self._known.clear()
        super().notify_style_update()

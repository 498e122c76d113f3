"""Names that are looked up when they are first used, so that importing a package costs nothing."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["lookup"]


def lookup(
    package: "dict[str, Any]", homes: "Mapping[str, str]", modules: "Iterable[str]" = ()
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """__getattr__ and __dir__ of the package whose globals these are.

    `homes`: in which of its modules each name is, as "module", or "module:name" where it is called otherwise.
    `modules`: those that are attributes themselves.
    """
    places = {**homes, **{name: f"{name}:" for name in modules}}

    def find(name: str) -> object:
        from importlib import import_module

        if name not in places:
            raise AttributeError(f"module {package['__name__']!r} has no attribute {name!r}")
        module, renamed, attribute = places[name].partition(":")
        value: object = import_module(f"{package['__name__']}.{module}")
        if attribute or not renamed:
            value = getattr(value, attribute or name)
        package[name] = value
        return value

    def names() -> list[str]:
        return sorted({*package, *places})

    return find, names

"""What configurations look like when they are printed."""

from __future__ import annotations

from .._kinds import is_container
from .._locate import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ._ends import MergeConfig, PipelineConfig, SinkConfig, SourceConfig
    from ._places import ExecutorConfig
    from ._stages import AggregateConfig, PathVariantsConfig, PipeConfig, Stage


def describe(
    title: str,
    src: SourceConfig | MergeConfig | None,
    pipes: Sequence[Stage],
    sink: SinkConfig | None,
) -> str:
    """The text of a pipeline that may not be complete."""
    lines = ["(none)"] if src is None else _source_lines(src)
    lines[0] = f"Source: {lines[0]}"
    text = [title, *_indented(lines, 2), "  Pipes:"]
    for stage in pipes:
        text += _indented(stage_lines(stage), 4)
    if not pipes:
        text.append("    (none)")
    text.append(f"  Sink: {'(none)' if sink is None else repr(sink)}")
    return "\n".join(text)


def _indented(lines: Sequence[str], by: int) -> list[str]:
    return [" " * by + line for line in lines]


def _source_lines(src: SourceConfig | MergeConfig) -> list[str]:
    from ._ends import MergeConfig

    return merge_lines(src) if isinstance(src, MergeConfig) else [repr(src)]


def merge_lines(config: MergeConfig) -> list[str]:
    lines = ["MergeConfig("]
    if config.op is not None:
        lines.append(f"  op={op_text(config.op)}")
    for i, upstream in enumerate(config.pipeline_configs, 1):
        lines += [f"  Pipeline {i}:", *_indented(repr(upstream).splitlines(), 4)]
    return [*lines, ")"]


def source_text(config: SourceConfig) -> str:
    """Never the elements, of which there may be millions."""
    from ...source import Source

    source = config.source
    text = repr(source) if isinstance(source, Source) else locate(source)
    continuous = ", continuous=True" if config.continuous else ""
    return f"SourceConfig({text}{continuous})"


def stage_lines(stage: Stage) -> list[str]:
    from ._stages import PathVariantsConfig

    return _variant_lines(stage) if isinstance(stage, PathVariantsConfig) else repr(stage).splitlines()


def _variant_lines(config: PathVariantsConfig) -> list[str]:
    batched = ", batched=True" if config.batched else ""
    lines = [f"PathVariants({config.name}, router={op_text(config.router)}{batched})"]
    for i, path in enumerate(config.paths):
        lines.append(f"  path{i}:")
        for stage in path:
            lines += _indented(stage_lines(stage), 4)
    return lines


def pipe_text(config: PipeConfig) -> str:
    from ...ops import Op

    native = isinstance(config.op, Op)
    texts = [f"op={op_text(config.op)}"]
    if config.executor is not None:
        texts.append(f"executor={_brief(config.executor)}")
    if config.concurrency is not None:
        texts.append(f"concurrency={config.concurrency}")
    if config.output_order != ("input" if native else "completion"):
        texts.append(f"output_order={config.output_order!r}")
    if config.on_error != ("raise" if native else "skip"):
        texts.append(f"on_error={config.on_error!r}")
    if config.max_failures is not None:
        texts.append(f"max_failures={config.max_failures}")
    if config.retries:
        texts.append(f"retries={config.retries}")
    if config.timeout is not None:
        texts.append(f"timeout={config.timeout:g}")
    return f"{config.name}({', '.join(texts)})"


def aggregate_text(config: AggregateConfig) -> str:
    from ._stages import Collate

    op = config.op
    what = str(op.n) if type(op) is Collate else f"op={op_text(op)}"
    return f"{config.name}({what}, drop_last={config.drop_last})"


def executor_text(config: ExecutorConfig) -> str:
    """What was given."""
    texts = [
        f"{name}={_brief(value)}" for name, value in config._items() if value not in (None, ())
    ]
    return f"{type(config).__name__}({', '.join(texts)})"


def op_text(op: object) -> str:
    """A function, with its place; a container by its type, for it may be large."""
    from ...ops import Op

    if isinstance(op, Op):
        return repr(op)
    return locate(type(op)) if is_container(op) else locate(op)


def _brief(value: object) -> str:
    """Options by value, anything else by its name."""
    from ._places import ExecutorConfig

    if isinstance(value, (str, int, tuple, ExecutorConfig)):
        return repr(value)
    return locate(value)

"""Draws small networks for random_models.py: a text in the graph language and its inputs.

Everything follows from the seed alone. Shapes are tracked here so that operands fit; they stay small: the evaluator is
a plain loop. random_coverage.py says which operators and options no network of a run in CI has.
"""
import collections
import dataclasses
import math
import random

CHANNELS = (1, 3, 5, 16, 17, 24, 32, 33, 48)
WIDE = (16, 24, 32, 48, 64)  # what blocked layouts are for
ELEMENTS = 6000  # of a tensor, at most
ACTIVATIONS = ("relu", "relu", "relu", "sigmoid", "tanh")
MORE_ACTIVATIONS = ("silu", "gelu", "elu", "hardswish", "leaky_relu", "softplus")
INITIALISERS = ("he_normal", "he_uniform", "glorot_normal", "glorot_uniform", "zeros")
# Labels of which some do not count.
Labels = collections.namedtuple("Labels", "classes ignored")


@dataclasses.dataclass
class Tensor:
    """A variable of the text; the shape begins with batch and channels."""
    name: str
    shape: tuple

    @property
    def channels(self):
        return self.shape[1]

    @property
    def spatial(self):
        return self.shape[2:]


class Graph:
    def __init__(self, seed, has_all=True):
        """Without `has_all` the network is of the operators that the language began with: seeds that found a defect then
        still draw the same one."""
        self.random, self.has_all = random.Random(seed), has_all
        self.lines, self.count, self.functions = [], 0, []
        # name -> what to draw, shape: "f32" any number, "mask" 0 or 1, "unit" 0 to 1, "shares" of a sum of 1 over the
        # classes, "weights" above 0, an int one of so many classes, Labels
        self.inputs = {}
        self.widths = self.random.choice((CHANNELS, WIDE)) if has_all else CHANNELS
        self.named, self.patterns = 0, []  # what matches parameters that training changes
        self.batch = self.random.choice((1, 2, 2, 3, 4, 5))
        rank = self.random.choice((1, 2, 2, 2, 3))
        low, high = {1: (6, 40), 2: (4, 15), 3: (3, 8)}[rank]
        spatial = tuple(self.random.randint(low, high) for _ in range(rank))
        x = self.input("x", "f32", (self.batch, self.random.choice((1, 3, 3, 5, 16, 17) if self.widths is CHANNELS else (3, 16)), *spatial))
        self.aside = []  # values that the loss may read, too
        for _ in range(self.random.randint(*((3, 8) if has_all else (2, 6)))):
            x = self.block(x)
        self.finish(x)
        self.optimizer = self.draw_optimizer() if has_all else self.draw_known_optimizer()
        self.settings = self.draw_settings() if has_all else ""

    # Text

    def input(self, name, kind, shape):
        self.inputs[name] = kind, shape
        return Tensor(name, shape)

    def let(self, expression, shape):
        self.count += 1
        self.lines.append(f"v{self.count} = {expression}")
        return Tensor(f"v{self.count}", tuple(shape))

    def apply(self, function, x, shape=None):
        return self.let(f"{function}({x.name})", shape or x.shape)

    def text(self):
        def shaped(shape):
            return ", ".join(["batch", *map(str, shape[1:])])
        inputs = [f"input {name} : {'i32' if isinstance(kind, (int, Labels)) else 'f32'}[{shaped(shape)}]"
                  for name, (kind, shape) in self.inputs.items()]
        body = "\n".join("  " + line for line in inputs + self.lines)
        functions = "".join(self.functions)
        return f"{functions}model m(batch = {self.batch}) {{\n{body}\n}}\ntrain {{ optimizer = {self.optimizer}{self.settings} }}\n"

    def chance(self, share):
        return self.random.random() < share

    def option(self, share, name, *values):
        """", name = value" of one of the values, or nothing; nothing is drawn without has_all."""
        return f", {name} = {self.random.choice(values)}" if self.has_all and self.chance(share) else ""

    def spelt(self, extents):
        """As a list, or as an int where all are equal."""
        return str(extents[0] if self.has_all and len(set(extents)) == 1 and self.chance(0.5) else extents)

    def strides(self, stride, default):
        return "" if self.has_all and stride == default and self.chance(0.5) else f", stride = {self.spelt(stride)}"

    def name(self, prefix):
        self.named += 1
        return f"{prefix}{self.named}"

    def layer(self, text, has_bias=True, prefix="layer"):
        """The call of a layer, completed: with a name of its own, frozen, or neither."""
        text += self.option(0.6 if text.startswith("conv_transpose") else 0.25, "init", *INITIALISERS, 0.1) * (prefix == "layer")
        is_frozen = self.option(0.06, "trainable", "false")
        if not is_frozen and has_bias:
            self.patterns.append("*.bias")
        if self.has_all and self.chance(0.3):
            name = self.name(prefix)
            text += f', name = "{name}"'
            if not is_frozen:
                self.patterns.append(f"{name}.*")
        return f"{text}{is_frozen})"

    # Layers

    def conv(self, x, channels=None, keep=False):
        """A convolution; with `keep` of the same spatial shape."""
        channels = channels or self.channels(x.spatial)
        kernel, stride, dilation, padding, spatial = [], [], [], [], []
        for size in x.spatial:
            k = self.random.choice((1, 2, 3, 3, 3, 4, 5) if len(x.spatial) < 3 else (1, 2, 3, 3))
            d = 2 if k > 1 and self.chance(0.15) else 1
            s = 1 if keep else self.random.choice((1, 1, 1, 2, 2, 3))
            p = d * (k - 1) // 2 if keep else self.random.randint(0, d * (k - 1))
            if keep and d * (k - 1) % 2 or size + 2 * p < d * (k - 1) + 1:
                k, d, s, p = 1, 1, 1, 0
            kernel.append(k), stride.append(s), dilation.append(d), padding.append(p)
            spatial.append((size + 2 * p - d * (k - 1) - 1) // s + 1)
        options = f"kernel = {self.spelt(kernel)}{self.strides(stride, [1] * len(stride))}, dilation = {self.spelt(dilation)}"
        if self.chance(0.25):
            options += ", padding = same"
            spatial = [-(-size // s) for size, s in zip(x.spatial, stride)]
        elif any(padding) or not self.has_all:
            options += f", padding = {self.spelt(padding)}"
        else:
            options += self.option(0.5, "padding", "valid")
        has_bias = not self.chance(0.4)
        options += "" if has_bias else ", bias = false"
        groups = self.random.choice((2, 3, 4, 8, x.channels))
        if self.chance(0.12) and groups > 1 and x.channels % groups == channels % groups == 0:
            options += f", groups = {groups}"
        return self.let(self.layer(f"conv({x.name}, {channels}, {options}", has_bias), (self.batch, channels, *spatial))

    def channels(self, spatial):
        return self.random.choice([c for c in self.widths if self.batch * c * math.prod(spatial) <= ELEMENTS] or [1])

    def conv_transpose(self, x):
        kernel, stride, output_padding, spatial = [], [], [], []
        for size in x.spatial:
            s = self.random.choice((1, 2, 2) if size < 10 else (1,))
            kernel.append(self.random.randint(s, 4)), stride.append(s), output_padding.append(self.random.randrange(s))
        padding = [self.random.randint(0, (k - 1) // 2) if size > 2 else 0 for k, size in zip(kernel, x.spatial)]
        dilation = [self.random.choice((1, 1, 2)) if self.has_all else 1 for _ in kernel]
        rule = self.random.choice(("", "", "same", "valid")) if self.has_all else ""
        if rule:
            padding, output_padding = [0] * len(kernel), [0] * len(kernel)
        for i, size in enumerate(x.spatial):
            spatial.append((size - 1) * stride[i] - 2 * padding[i] + dilation[i] * (kernel[i] - 1) + 1 + output_padding[i])
        if rule == "same":
            spatial = [size * s for size, s in zip(x.spatial, stride)]
        channels = self.channels(spatial)
        has_bias = not self.chance(0.4)
        options = f"kernel = {self.spelt(kernel)}{self.strides(stride, [1] * len(stride))}, padding = {rule or self.spelt(padding)}"
        if not rule:
            options += f", output_padding = {self.spelt(output_padding)}"
        if any(d > 1 for d in dilation):
            options += f", dilation = {self.spelt(dilation)}"
        groups = [g for g in (2, 3, 4, 8) if x.channels % g == channels % g == 0]
        if groups:
            options += self.option(0.5, "groups", *groups)
        options += "" if has_bias else ", bias = false"
        return self.let(self.layer(f"conv_transpose({x.name}, {channels}, {options}", has_bias), (self.batch, channels, *spatial))

    def max_pool(self, x):
        kernel, stride, padding, spatial = [], [], [], []
        for size in x.spatial:
            k = min(size, self.random.choice((1, 2, 2, 3)))
            s, p = self.random.choice((k, k, 1, 2)), self.random.randint(0, k // 2)
            kernel.append(k), stride.append(s), padding.append(p), spatial.append((size + 2 * p - k) // s + 1)
        rule = self.spelt(padding)
        if self.chance(0.15):
            spatial = [-(-size // s) for size, s in zip(x.spatial, stride)]
            rule = "same"
        elif self.has_all and not any(padding):
            rule = self.random.choice((rule, "valid"))
        return self.let(f"max_pool({x.name}, kernel = {self.spelt(kernel)}{self.strides(stride, kernel)}, padding = {rule})",
                        (self.batch, x.channels, *spatial))

    def avg_pool(self, x):
        kernel = [min(size, self.random.choice((1, 2, 3))) for size in x.spatial]
        stride = [self.random.choice((1, k, 2)) for k in kernel]
        rule = self.random.choice(("given", "given", "same", "same", "valid"))
        padding = [k // 2 if rule == "given" else 0 for k in kernel]
        spatial = [(size + 2 * p - k) // s + 1 for size, p, k, s in zip(x.spatial, padding, kernel, stride)]
        if rule == "same":
            spatial = [-(-size // s) for size, s in zip(x.spatial, stride)]
        rule = self.spelt(padding) if rule == "given" else rule
        return self.let(f"avg_pool({x.name}, kernel = {self.spelt(kernel)}{self.strides(stride, kernel)}, padding = {rule}"
                        f"{self.option(0.6, 'count_include_pad', 'true', 'false', 'false')})", (*x.shape[:2], *spatial))

    def batch_norm(self, x):
        """Of enough elements that none is the mean by itself."""
        if self.batch * math.prod(x.spatial) < 6:
            return x
        scale = ", scale = false" if self.chance(0.2) else ""
        scale += self.option(0.2, "eps", 1e-3, 0.1) + self.option(0.2, "momentum", 0.3, 0.9) + self.option(0.15, "init_scale", 0.5)
        scale += self.option(0.25, "sync", "true", "true", "false")
        return self.let(self.layer(f"batch_norm({x.name}{scale}", prefix="norm"), x.shape)

    def activation(self, x):
        function = self.random.choice(ACTIVATIONS + MORE_ACTIVATIONS * self.has_all)
        if function == "leaky_relu":
            return self.let(f"leaky_relu({x.name}{self.option(0.5, 'slope', 0.2, -0.5)})", x.shape)
        return self.apply(function, x)

    def dropout(self, x):
        return self.let(f"dropout({x.name}, {self.random.choice((0.1, 0.5))})", x.shape)

    def unit(self, x, **options):
        """Convolution, normalisation, activation, dropout: some of them."""
        x = self.conv(x, **options)
        if self.chance(0.4):
            x = self.batch_norm(x)
        if self.chance(0.75):
            x = self.activation(x)
        return self.dropout(x) if self.chance(0.12) else x

    # Blocks

    def block(self, x):
        makers = [self.unit, self.unit, self.unit, self.unit, self.residual, self.branches, self.arithmetic, self.arithmetic]
        if max(x.spatial) > 1:
            makers += [self.max_pool, self.skip]
        if math.prod(x.shape) < ELEMENTS // 8:
            makers += [self.conv_transpose]
        makers += [self.reshaped, self.batch_norm]
        if self.has_all:
            makers += [self.sample_norm, self.sample_norm, self.moved, self.moved, self.moved, self.resampled, self.resampled,
                       self.resampled, self.pointwise, self.pointwise, self.reduced, self.reduced, self.reused, self.function,
                       self.parameters, self.random_numbers, self.counted]
            if math.prod(x.shape) < ELEMENTS // 8:
                makers += [self.conv_transpose, self.conv_transpose]
        y = self.random.choice(makers)(x)
        if self.chance(0.2):
            self.aside.append(y)
        return y

    def residual(self, x):
        y = self.unit(x, keep=True)
        y = self.batch_norm(self.conv(y, channels=x.channels, keep=True))
        return self.activation(self.let(f"{x.name} + {y.name}" if self.chance(0.8) else f"{y.name} - {x.name}", x.shape))

    def branches(self, x):
        """Inception-like: a concatenation of two to four branches of the same operand, one of which may be the
        operand."""
        parts = []
        for _ in range(self.random.randint(2, 4)):
            kind = self.random.randrange(4)
            if kind == 0 and x not in parts:
                parts.append(x)
            elif kind == 1:
                kernel = [3 if size > 1 else 1 for size in x.spatial]
                pooled = self.let(f"max_pool({x.name}, kernel = {kernel}, stride = 1, padding = {[k // 2 for k in kernel]})", x.shape)
                parts.append(self.unit(pooled, channels=self.random.choice((3, 5, 16)), keep=True))
            else:
                channels = self.random.choice((1, 3, 8, 16, 17) if self.widths is CHANNELS else (16, 32))
                part = self.unit(x, channels=channels, keep=True)
                parts.append(self.unit(part, channels=channels, keep=True) if self.chance(0.3) else part)
        shape = list(x.shape)
        shape[1] = sum(part.channels for part in parts)
        return self.let(f"concat({', '.join(part.name for part in parts)})", shape)

    def skip(self, x):
        """As in a U-Net: down, something, up to the same shape, and joined to what there was."""
        x = self.unit(x, keep=True)
        halved = [size if size == 1 else size // 2 for size in x.spatial]
        down = [1 if size == 1 else 2 for size in x.spatial]
        y = self.let(f"max_pool({x.name}, kernel = {down})", (*x.shape[:2], *halved))
        y = self.unit(y, keep=True)
        odd = [size - half * step for size, half, step in zip(x.spatial, halved, down)]
        channels = self.random.choice((3, 8, 16, 17) if self.widths is CHANNELS else (16, 32))
        y = self.let(f"conv_transpose({y.name}, {channels}, kernel = {down}, stride = {down}, output_padding = {odd})",
                     (self.batch, channels, *x.spatial))
        if self.chance(0.3):
            y = self.activation(y)
        return self.let(f"concat({x.name}, {y.name})", (self.batch, x.channels + channels, *x.spatial))

    def arithmetic(self, x):
        n, axes = x.name, list(range(2, len(x.shape)))
        kind = self.random.randrange(10)
        if kind == 0:  # squeeze and excite
            squeezed = self.let(f"mean({n}, axes = {axes})", x.shape[:2])
            gate = self.let(f"sigmoid(dense({squeezed.name}, {x.channels}))", x.shape[:2])
            gate = self.let(f"reshape({gate.name}, {[*x.shape[:2], *[1] * len(axes)]})", x.shape)
            return self.let(f"{n} * {gate.name}", x.shape)
        if kind == 1:
            axis = self.random.randrange(1, len(x.shape))
            return self.let(f"{n} - mean({n}, axes = {axis}, keep = true)", x.shape)
        if kind == 2:
            y = self.conv(x, channels=self.random.choice((1, x.channels)), keep=True)
            return self.let(f"{self.random.choice(('max', 'min'))}({n}, {y.name})" if y.channels == x.channels else f"{n} * {y.name}", x.shape)
        if kind == 3:
            return self.let(f"{n} / (1.5 + abs({n}))", x.shape)
        if kind == 4:
            return self.let(f"log(1.0 + exp({n} * 0.5)) - 0.25 * {n}", x.shape)
        if kind == 5:
            return self.let(f"sqrt(0.3 + {n} * {n})", x.shape)
        if kind == 6:
            return self.let(f"({n} > 0.1) * {n} + 0.5 * tanh({n})", x.shape)
        if kind == 7:
            axis = self.random.randrange(1, len(x.shape))
            return self.let(f"{n} / (1.0 + sum({n} * {n}, axes = {axis}, keep = true))", x.shape)
        if kind == 8:
            return self.let(f"softmax({n}) * {x.channels}.0", x.shape)
        return self.let(f"concat({n}, relu(-{n}), {n} * {n})", (self.batch, 3 * x.channels, *x.spatial))

    def pointwise(self, x):
        """Two functions without jumps."""
        n = x.name
        one, two = self.random.sample((
            f"where({n} > 0.2, {n}, 0.3 * {n} + 0.14)", f"log10(2.0 + {n} ** 2)", f"{n} ** 3 / (1.0 + {n} ** 2)",
            f"clamp({n}, -0.9, 1.1)", f"stop_gradient({n}) * {n}", f"{n} + stop_gradient(tanh({n}))",
            f"min(max({n}, -1.2), softplus({n}))", f"max([{n}, -0.5 * {n}, 0.1])", f"tanh({n}) - min({n}, 0.4, -{n} ** 2)",
            f"({n} > 0.0 && {n} <= 1.0) * {n} * (1.0 - {n})", f"where({n} < -0.5 || !({n} < 0.5), abs({n}), 0.5)",
            f"(max({n}, 0.0) == {n}) * {n} - 0.2 * (min({n}, 0.0) != {n}) * {n}", f"{n} * (1.5 + {n} ** 2) ** -0.5",
            f"where({n} >= 0.0, {n}, 0.0) - exp(-{n} ** 2)", f"log(1.0 + abs({n}))"), 2)
        return self.let(f"0.6 * ({one}) + 0.5 * ({two})", x.shape)

    def sample_norm(self, x):
        """Of enough elements, as batch_norm's."""
        groups = self.random.choice([g for g in range(1, min(x.channels, 8) + 1) if x.channels % g == 0])
        space = math.prod(x.spatial)
        makers = [f"layer_norm({x.name}"] if x.channels * space >= 6 else []
        makers += [f"group_norm({x.name}, {groups}"] if x.channels // groups * space >= 6 else []
        makers += [f"instance_norm({x.name}"] if space >= 6 else []
        if not makers:
            return x
        return self.let(self.layer(self.random.choice(makers) + self.option(0.3, "eps", 1e-3, 0.1), prefix="norm"), x.shape)

    def moved(self, x):
        """Elements at other places, some left out or repeated."""
        kind, axis = self.random.randrange(6), self.random.randrange(1, len(x.shape))
        if kind == 0:
            return self.part(x, axis)
        if kind == 1:
            order = [0, *self.random.sample(range(1, len(x.shape)), len(x.shape) - 1)]
            return self.let(f"transpose({x.name}, {order})", [x.shape[i] for i in order])
        if kind == 2:
            most = min(2, min(x.spatial) - 1)  # what a mirror can show
            pads = [[self.random.randint(0, most), self.random.randint(0, most)] for _ in x.spatial]
            spatial = [size + sum(pair) for size, pair in zip(x.spatial, pads)]
            if math.prod(x.shape[:2]) * math.prod(spatial) > ELEMENTS:
                return x
            return self.let(f"pad({x.name}, {pads}{self.option(0.9, 'mode', 'zero', 'reflect', 'edge')})", (*x.shape[:2], *spatial))
        if kind == 3 and x.channels % 2**len(x.spatial) == 0:
            return self.let(f"pixel_shuffle({x.name}, 2)", (self.batch, x.channels // 2**len(x.spatial), *(2 * size for size in x.spatial)))
        shape = list(x.shape)
        if kind == 4 and 2 * math.prod(shape) <= ELEMENTS:
            shape[axis] *= 2
            return self.let(f"concat([{x.name}, tanh({x.name})], axis = {axis})", shape)
        shape[axis] = 1
        mean = self.let(f"mean({x.name}, axes = {axis}, keep = true)", shape)
        spread = self.let(f"broadcast(tanh({mean.name}), {list(x.shape)})", x.shape)
        return self.let(f"{x.name} + {spread.name}", x.shape)

    def part(self, x, axis):
        """Every step-th element from one to another, the places counted from the start or from the end."""
        extent, shape = x.shape[axis], list(x.shape)
        start, step = self.random.randint(0, extent // 3), self.random.choice((1, 1, 2))
        end = self.random.randint(start + 1, extent) if self.chance(0.6) else extent
        shape[axis] = -(-(end - start) // step)
        first = start - extent if self.chance(0.4) else start
        last = "" if end == extent else f", to = {end - extent if self.chance(0.6) else end}"
        steps = "" if step == 1 and self.chance(0.5) else f", step = {step}"
        axis = axis - len(shape) if self.chance(0.3) else axis
        return self.let(f"slice({x.name}, axis = {axis}, from = {first}{last}{steps})", shape)

    def resampled(self, x):
        kind = self.random.randrange(5)
        sizes = [self.random.randint(1, size + 2) for size in x.spatial]
        if self.chance(0.3):
            sizes = [min(sizes)] * len(sizes)
        mode = self.option(0.8, "mode", "nearest", "linear", "linear")
        if kind == 0:
            sizes = [min(size, min(x.spatial) if len(set(sizes)) == 1 else extent) for size, extent in zip(sizes, x.spatial)]
            return self.let(f"adaptive_avg_pool({x.name}, {self.spelt(sizes)})", (*x.shape[:2], *sizes))
        if kind == 1 and math.prod(x.shape[:2]) * math.prod(sizes) <= ELEMENTS:
            return self.let(f"resize({x.name}, {self.spelt(sizes)}{mode})", (*x.shape[:2], *sizes))
        scales = [self.random.choice((1, 2, 2, 3)) for _ in sizes] if self.chance(0.5) else [2] * len(sizes)
        if kind == 2 and math.prod(x.shape) * math.prod(scales) <= ELEMENTS:
            return self.let(f"upsample({x.name}, {self.spelt(scales)}{mode})", (*x.shape[:2], *(s * size for s, size in zip(scales, x.spatial))))
        if kind == 3:
            return self.avg_pool(x)
        stride = [self.random.choice((1, 2, 3)) for _ in sizes] if self.chance(0.4) else [2] * len(sizes)
        return self.let(f"blur_pool({x.name}{self.strides(stride, [2] * len(sizes))})", (*x.shape[:2], *(-(-size // s) for size, s in zip(x.spatial, stride))))

    def reduced(self, x):
        """Over one or two axes, beside what it is of; an argmax as a feature, as it is no tensor of numbers."""
        kind = self.random.randrange(6)
        axes = sorted(self.random.sample(range(1, len(x.shape)), self.random.choice((1, 1, 2))))
        shape = [1 if i in axes else extent for i, extent in enumerate(x.shape)]
        if kind == 0:
            shape = [1 if i == axes[0] else extent for i, extent in enumerate(x.shape)]
            return self.let(f"{x.name} * (0.5 + 0.1 * reshape(argmax({x.name}, {axes[0]}), {shape}))", x.shape)
        if kind == 1:
            return self.let(f"0.25 * log_softmax({x.name})", x.shape)
        function = ("sum", "mean", "amax", "var")[kind - 2]
        options = f"axes = {self.spelt(axes)}"
        if function == "var":
            if math.prod(x.shape[i] for i in axes) < 2:
                return x
            options += self.option(0.7, "correction", 0, 1)
        if self.chance(0.5):
            value = f"{function}({x.name}, {options}, keep = true)"
        else:
            value = f"reshape({function}({x.name}, {options}{self.option(0.3, 'keep', 'false')}), {shape})"
        return self.let({"sum": f"{x.name} / (1.0 + {value} ** 2)", "mean": f"{x.name} - {value}", "amax": f"{x.name} - 0.5 * {value}",
                         "var": f"{x.name} / sqrt(0.5 + {value})"}[function], x.shape)

    def reused(self, x):
        """One layer twice."""
        name = self.name("shared")
        for reuse in ("", ", reuse = true"):
            kernel = [3 if size > 1 else 1 for size in x.spatial]
            x = self.let(f"conv({x.name}, {x.channels}, kernel = {kernel}, padding = {[k // 2 for k in kernel]}, name = \"{name}\"{reuse})", x.shape)
            x = self.activation(x)
        return x

    def function(self, x):
        """A function of the file, called once or twice with the same parameters. Called as \"\" it adds nothing to names:
        what it makes has names of its own."""
        function, call, norm = self.name("part"), self.name("call"), self.name("norm")
        draws = self.random.choice(("y", f"y + normal({list(x.shape)}, std = 0.1)", "dropout(y, rate = 0.2)"))
        self.functions.append(f"fn {function}(x, channels, kernel = 1) {{\n"
                              f'  y = batch_norm(conv(x, channels, kernel = kernel, padding = same, name = "{function}"), name = "{norm}")\n'
                              f"  return tanh({draws})\n}}\n")
        name, kernel = self.random.choice(("", call, call)), self.random.choice(("", ", kernel = 3"))
        for reuse in ("", ", reuse = true")[:self.random.choice((1, 2)) if name else 1]:
            frozen = self.option(0.2, "trainable", "false") if not reuse else ""
            x = self.let(f'{function}({x.name}, {x.channels}{kernel}, name = "{name}"{reuse}{frozen})', x.shape)
        return x

    def parameters(self, x):
        """A gain, an offset, or a number made of parameters."""
        name, shape = self.name("free"), [1] * len(x.shape)
        kind = self.random.randrange(4)
        if kind == 3:
            init = self.random.choice(INITIALISERS)
            number = self.random.choice(("amax({})", "var({})", "sum({} ** 2)", "var({}, correction = 0)"))
            number = number.format(f'parameter([3, 4], init = {init}, name = "{name}")')
            y = self.let(f"{x.name} * (1.0 + 0.1 * {number})", x.shape)
        elif kind == 2:
            shape[1:] = x.shape[1:]
            y = self.let(f'{x.name} + parameter({shape}{self.option(0.9, "init", *INITIALISERS)}, name = "{name}")', x.shape)
        else:
            shape[1] = x.channels
            y = self.let(f'{x.name} * parameter({shape}, init = {self.random.choice((1.0, 0.5))}, name = "{name}")', x.shape)
        self.patterns.append(name)
        return y

    def random_numbers(self, x):
        shape = f"[batch, {', '.join(map(str, x.shape[1:]))}]"
        return self.let(self.random.choice((
            f"{x.name} + 0.2 * uniform({shape}{self.option(0.5, 'low', -1, -0.5)}{self.option(0.5, 'high', 1.5)})",
            f"{x.name} * (1.0 + 0.2 * normal({shape}{self.option(0.5, 'mean', 0.5)}{self.option(0.5, 'std', 0.5)}))",
            f"where(bernoulli({shape}, {self.random.choice((0.3, 0.8))}), {x.name}, 0.2 * {x.name})")), x.shape)

    def counted(self, x):
        """Layers of a loop, in numbers that the compiler works out."""
        self.count += 1
        y, name, kernels = f"v{self.count}", self.name("loop"), self.random.choice(([1, 3], [3, 1], [3, 3], [1, 3, 3]))
        self.lines += [f"{y} = {x.name}",
                       f"for [i, k] in enumerate(reversed({kernels})) {{ {y} = {y} + conv({y}, int({x.channels}.6), kernel = k, "
                       f"padding = floor(k / 2.0), name = \"{name}.{{i}}\") / round(1.6 * len({kernels})) }}"]
        self.patterns += ["*.bias", f"{name}.1.*"]
        return Tensor(y, x.shape)

    def reshaped(self, x):
        """Channels and space mixed, or the last axes joined."""
        if len(x.spatial) > 1 and self.chance(0.5):
            shape = (*x.shape[:-2], x.shape[-2] * x.shape[-1])
        elif len(x.spatial) > 1 and self.chance(0.5):
            shape = (x.shape[0], x.shape[1] * x.shape[2], *x.shape[3:])
        else:
            shape = (x.shape[0], *x.shape[2:], x.shape[1]) if len(x.shape) < 5 else (*x.shape[:2], *x.shape[:1:-1])
        return self.let(f"reshape({x.name}, {list(shape)})", shape)

    # What the losses read

    def rows(self, x):
        """[batch, features]"""
        if self.chance(0.4):
            return self.let(f"mean({x.name}, axes = {list(range(2, len(x.shape)))})", x.shape[:2])
        return self.apply("flatten", x, (self.batch, math.prod(x.shape[1:])))

    def dense(self, x, channels):
        """The head of a loss, or what is ahead of it: always trained."""
        has_bias = not self.chance(0.3)
        self.patterns += ["*.bias"] * has_bias
        return self.let(f"dense({x.name}, {channels}{'' if has_bias else ', bias = false'}{self.option(0.2, 'init', *INITIALISERS, 0.1)})",
                        (self.batch, channels))

    def head(self, x, channels):
        has_bias = not self.chance(0.3)
        self.patterns += ["*.bias"] * has_bias
        return self.let(f"conv({x.name}, {channels}, kernel = 1{'' if has_bias else ', bias = false'})", (self.batch, channels, *x.spatial))

    def finish(self, x):
        loss = self.loss if self.has_all else self.known_loss
        losses = [loss(x, "")]
        for i, y in enumerate(self.aside[:2]):
            losses.append(f"{self.random.choice((0.3, 0.5))} * " +
                          (loss(y, str(i)) if self.chance(0.4) else f"mean({y.name} * {y.name})"))
        if not self.aside and self.chance(0.2):
            losses.append(f"0.1 * mean(abs({x.name}))")
        self.lines.append("loss = " + " + ".join(losses))

    def metric(self, name, value):
        self.lines.append(f"metric {name} = {value}")

    def output(self, suffix, value):
        self.lines.append(f"output y{suffix} = {value}")

    def where(self, t, shape):
        """A mask of a loss whose elements have that shape, some axes of which may be repeated."""
        if not self.chance(0.35):
            return ""
        shape = (self.batch, *(1 if self.chance(0.3) else extent for extent in shape[1:]))
        self.input("w" + t, self.random.choice(("mask", "weights")), shape)
        return f", where = w{t}"

    def loss(self, x, suffix):
        """A term of the loss, with metrics and an output of its own."""
        kind = self.random.choice(("classes", "rows", "pixels", "binary", "binary", "overlap", "image"))
        t, classes = "t" + suffix, self.random.choice((2, 3, 5, 10, 17))
        if kind in ("classes", "rows"):
            features = self.rows(x)
            if self.chance(0.3):
                width = self.random.choice((5, 16, 33))
                features = self.apply("relu", self.dense(features, width))
            y = self.dense(features, classes)
            return self.entropy(y, t, suffix) if kind == "classes" else self.distance(y, t, suffix)
        if kind == "pixels":
            return self.entropy(self.head(x, min(classes, 5)), t, suffix)
        y = self.head(x, self.random.choice((1, 1, 2, 3)))
        return {"binary": self.binary, "overlap": self.overlap, "image": self.distance}[kind](y, t, suffix)

    def target(self, y, t, number, kinds=("f32",)):
        """An input, or now and then a number."""
        if self.chance(0.1):
            return number
        self.input(t, self.random.choice(kinds), y.shape)
        return t

    def distance(self, y, t, suffix):
        target = self.target(y, t, 0.25)
        if self.chance(0.4):
            name = self.random.choice(("quality", "ratio", "spread"))
            self.metric(name + suffix, {"quality": f"psnr({y.name}, {target}, range = {self.random.choice((1, 255))})",
                                        "ratio": f"1 - mse({y.name}, {target}) / (0.5 + mae({y.name}, {target}))",
                                        "spread": f"-10 * log10(sqrt(mean({y.name} * {y.name})) + exp(-mean(abs({y.name}))))"}[name])
        self.output(suffix, f"tanh({y.name})")
        name = self.random.choice(("mse", "mae", "huber"))
        delta = self.option(0.5, "delta", 0.5, 2) if name == "huber" else ""
        return f"{name}({y.name}, {target}{delta}{self.where(t, y.shape)})"

    def binary(self, y, t, suffix):
        target = self.target(y, t, 0.75, ("mask", "mask", "unit"))
        if target == t:
            self.metric("overlap" + suffix, f"{self.random.choice(('iou', 'dice'))}({y.name} > 0.0, {t} > 0.5)")
        self.output(suffix, f"sigmoid({y.name})")
        if self.chance(0.5):
            return f"bce_with_logits({y.name}, {target}{self.option(0.4, 'pos_weight', 0.5, 3)}{self.where(t, y.shape)})"
        options = self.option(0.5, "alpha", 0.6, -1) + self.option(0.5, "gamma", 0, 1, 1.5, 3)
        return f"focal_with_logits({y.name}, {target}{options}{self.where(t, y.shape)})"

    def overlap(self, y, t, suffix):
        target = self.target(y, t, 1.0, ("mask", "unit"))
        p = self.apply("sigmoid", y)
        self.metric("share" + suffix, f"mean({p.name})")
        self.output(suffix, p.name)
        return f"dice_loss({p.name}, {target}{self.option(0.5, 'smooth', 0.1, 3)})"

    def entropy(self, logits, t, suffix):
        shape, classes = (self.batch, *logits.shape[2:]), logits.channels
        self.output(suffix, f"softmax({logits.name})")
        kind = self.random.choice(("labels", "labels", "labels", "ignoring", "ignoring", "shares"))
        options = f", smoothing = {self.random.choice((0.1, 0.3))}" if self.chance(0.25) else ""
        ignore = ""
        if self.chance(0.35):
            options += f", weights = {[self.random.choice((0.3, 1, 2.5)) for _ in range(classes)]}"
        if kind == "shares":
            self.input(t, "shares", logits.shape)
        elif kind == "labels":
            self.input(t, classes, shape)
            if self.chance(0.5):
                k = self.option(0.5, "k", *range(1, min(classes, 4)))
                self.metric("accuracy" + suffix, f"accuracy({logits.name}, {t}{k})")
        else:
            ignored = self.random.choice((255, -1, classes - 1))
            self.input(t, Labels(classes, ignored), shape)
            ignore = f", ignore = {ignored}"
            self.metric("accuracy" + suffix, f"accuracy({logits.name}, {t}{ignore})")
        options += ignore
        if kind != "shares" and classes <= 5 and self.chance(0.6):
            self.metric("regions" + suffix, f"{self.random.choice(('iou', 'dice'))}(argmax({logits.name}, 1), {t}, classes = {classes}{ignore})")
        return f"softmax_cross_entropy({logits.name}, {t}{options}{self.where(t, shape)})"

    def draw_optimizer(self):
        kind = self.random.choice(("sgd", "sgd", "sgd", "adam", "adamw", "rmsprop"))
        options = f"lr = {self.random.choice((0.5, 0.1)) if kind == 'sgd' else 0.05}"
        if kind in ("sgd", "rmsprop"):
            momentum = self.option(0.5, "momentum", 0.5, 0.9)
            options += momentum + (self.option(0.5, "nesterov", "true") if momentum and kind == "sgd" else "")
        if kind == "rmsprop":
            options += self.option(0.5, "alpha", 0.9, 0.5)
        if kind.startswith("adam"):
            options += self.option(0.4, "beta1", 0.8) + self.option(0.4, "beta2", 0.9)
        if kind != "sgd":
            options += self.option(0.6, "eps", 1e-3, 0.01)
        options += self.option(0.5, "weight_decay", 0.1, 0.02)
        if self.patterns:
            options += self.option(0.4, "no_decay", f'["{self.random.choice(self.patterns)}"]')
        return f"{kind}({options})"

    def draw_settings(self):
        settings = f"; clip_norm = {self.random.choice((0.1, 1.0, 100.0))}" if self.chance(0.3) else ""
        settings += f"; ema = {self.random.choice((0.9, 0.5))}" if self.chance(0.3) else ""
        if self.patterns and self.chance(0.35):
            chosen = self.random.sample(self.patterns, min(len(self.patterns), 2))
            settings += "; lr_scale = [" + ", ".join(f'["{pattern}", {self.random.choice((0.5, 4))}]' for pattern in chosen) + "]"
        if self.patterns and self.chance(0.35):
            settings += f'; freeze = ["{self.random.choice(self.patterns)}"]'
        return settings

    # What the language began with

    def known_loss(self, x, suffix):
        """A term of the loss, with a metric and an output of its own."""
        kind = self.random.choice(("classes", "classes", "rows", "pixels", "mask", "image", "weighted"))
        t = "t" + suffix
        classes = self.random.choice((2, 3, 5, 10, 17))
        if kind in ("classes", "rows"):
            features = self.rows(x)
            if self.chance(0.3):
                features = self.let(f"relu(dense({features.name}, {self.random.choice((5, 16, 33))}))", features.shape)
            if kind == "rows":
                y = self.dense(features, classes)
                self.input(t, "f32", y.shape)
                self.output(suffix, y.name)
                return f"{self.random.choice(('mse', 'mae'))}({y.name}, {t})"
            return self.known_entropy(self.dense(features, classes), t, suffix)
        if kind == "pixels":
            return self.known_entropy(self.head(x, min(classes, 5)), t, suffix)
        y = self.head(x, self.random.choice((1, 1, 2, 3)))
        self.output(suffix, f"{'sigmoid' if kind == 'mask' else 'tanh'}({y.name})")
        if kind == "mask":
            self.input(t, "mask", y.shape)
            self.metric("iou" + suffix, f"iou({y.name} > 0.0, {t} > 0.5)")
            return f"bce_with_logits({y.name}, {t})"
        self.input(t, "f32", y.shape)
        name = self.random.choice(("mse", "mae"))
        if kind == "image":
            return f"{name}({y.name}, {t})"
        self.input("w" + t, "mask", y.shape)
        return f"{name}({y.name}, {t}, where = w{t})"

    def known_entropy(self, logits, t, suffix):
        self.input(t, logits.channels, (self.batch, *logits.shape[2:]))
        self.output(suffix, f"softmax({logits.name})")
        if self.chance(0.6):
            k = 2 if logits.channels > 2 and self.chance(0.3) else 1
            self.metric("accuracy" + suffix, f"accuracy({logits.name}, {t}, k = {k})")
        smoothing = ", smoothing = 0.1" if self.chance(0.2) else ""
        return f"softmax_cross_entropy({logits.name}, {t}{smoothing})"

    def draw_known_optimizer(self):
        decay = self.random.choice(("", "", ", weight_decay = 0.1", ', weight_decay = 0.1, no_decay = ["*.bias"]'))
        kind = self.random.randrange(6)
        if kind < 2:
            return f"sgd(lr = 0.5{decay})"
        if kind < 4:
            return f"sgd(lr = 0.5, momentum = 0.9{', nesterov = true' if self.chance(0.5) else ''}{decay})"
        return f"{'adam' if kind == 4 else 'adamw'}(lr = 0.05{decay})"

"""Draws small networks for random_models.py: a text in the graph language and its inputs.

Everything follows from the seed alone. Shapes are tracked here so that operands fit; they stay small: the evaluator is
a plain loop.
"""
import dataclasses
import math
import random

CHANNELS = (1, 3, 5, 16, 17, 24, 32, 33, 48)
ELEMENTS = 6000  # of a tensor, at most
ACTIVATIONS = ("relu", "relu", "relu", "sigmoid", "tanh")
MORE_ACTIVATIONS = ("silu", "gelu", "elu", "hardswish", "leaky_relu", "softplus")


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
        self.lines, self.count = [], 0
        self.inputs = {}  # name -> what to draw, shape: "f32" any number, "mask" 0 or 1, an int one of so many classes
        self.batch = self.random.choice((1, 2, 2, 3, 4, 5))
        rank = self.random.choice((1, 2, 2, 2, 3))
        low, high = {1: (6, 40), 2: (4, 15), 3: (3, 8)}[rank]
        spatial = tuple(self.random.randint(low, high) for _ in range(rank))
        x = self.input("x", "f32", (self.batch, self.random.choice((1, 3, 3, 5, 16, 17)), *spatial))
        self.aside = []  # values that the loss may read, too
        for _ in range(self.random.randint(2, 6)):
            x = self.block(x)
        self.finish(x)
        self.optimizer = self.draw_optimizer()

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
        inputs = [f"input {name} : {'i32' if isinstance(kind, int) else 'f32'}[{shaped(shape)}]" for name, (kind, shape) in self.inputs.items()]
        body = "\n".join("  " + line for line in inputs + self.lines)
        return f"model m(batch = {self.batch}) {{\n{body}\n}}\ntrain {{ optimizer = {self.optimizer} }}\n"

    def chance(self, share):
        return self.random.random() < share

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
        options = f"kernel = {kernel}, stride = {stride}, dilation = {dilation}"
        if self.chance(0.25):
            options += ", padding = same"
            spatial = [-(-size // s) for size, s in zip(x.spatial, stride)]
        else:
            options += f", padding = {padding}"
        if self.chance(0.4):
            options += ", bias = false"
        groups = self.random.choice((2, 3, 4, 8, x.channels))
        if self.chance(0.12) and groups > 1 and x.channels % groups == channels % groups == 0:
            options += f", groups = {groups}"
        return self.let(f"conv({x.name}, {channels}, {options})", (self.batch, channels, *spatial))

    def channels(self, spatial):
        return self.random.choice([c for c in CHANNELS if self.batch * c * math.prod(spatial) <= ELEMENTS] or [1])

    def conv_transpose(self, x):
        kernel, stride, output_padding, spatial = [], [], [], []
        for size in x.spatial:
            s = self.random.choice((1, 2, 2) if size < 10 else (1,))
            kernel.append(self.random.randint(s, 4)), stride.append(s), output_padding.append(self.random.randrange(s))
        padding = [self.random.randint(0, (k - 1) // 2) if size > 2 else 0 for k, size in zip(kernel, x.spatial)]
        for i, size in enumerate(x.spatial):
            spatial.append((size - 1) * stride[i] - 2 * padding[i] + kernel[i] + output_padding[i])
        channels = self.channels(spatial)
        bias = ", bias = false" if self.chance(0.4) else ""
        return self.let(f"conv_transpose({x.name}, {channels}, kernel = {kernel}, stride = {stride}, padding = {padding}, "
                        f"output_padding = {output_padding}{bias})", (self.batch, channels, *spatial))

    def max_pool(self, x):
        kernel, stride, padding, spatial = [], [], [], []
        for size in x.spatial:
            k = min(size, self.random.choice((1, 2, 2, 3)))
            s, p = self.random.choice((k, k, 1, 2)), self.random.randint(0, k // 2)
            kernel.append(k), stride.append(s), padding.append(p), spatial.append((size + 2 * p - k) // s + 1)
        if self.chance(0.15):
            spatial = [-(-size // s) for size, s in zip(x.spatial, stride)]
            padding = "same"
        return self.let(f"max_pool({x.name}, kernel = {kernel}, stride = {stride}, padding = {padding})", (self.batch, x.channels, *spatial))

    def batch_norm(self, x):
        """Of enough elements that none is the mean by itself."""
        if self.batch * math.prod(x.spatial) < 6:
            return x
        scale = ", scale = false" if self.chance(0.2) else ""
        return self.let(f"batch_norm({x.name}{scale})", x.shape)

    def activation(self, x):
        return self.apply(self.random.choice(ACTIVATIONS + MORE_ACTIVATIONS * self.has_all), x)

    def unit(self, x, **options):
        """Convolution, normalisation, activation, dropout: some of them."""
        x = self.conv(x, **options)
        if self.chance(0.4):
            x = self.batch_norm(x)
        if self.chance(0.75):
            x = self.activation(x)
        return self.let(f"dropout({x.name}, {self.random.choice((0.1, 0.5))})", x.shape) if self.chance(0.12) else x

    # Blocks

    def block(self, x):
        makers = [self.unit, self.unit, self.unit, self.unit, self.residual, self.branches, self.arithmetic, self.arithmetic]
        if max(x.spatial) > 1:
            makers += [self.max_pool, self.skip]
        if math.prod(x.shape) < ELEMENTS // 8:
            makers += [self.conv_transpose]
        makers += [self.reshaped, self.batch_norm]
        if self.has_all:
            makers += [self.sample_norm, self.moved, self.moved, self.resampled, self.pointwise, self.reduced, self.reused]
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
                channels = self.random.choice((1, 3, 8, 16, 17))
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
        channels = self.random.choice((3, 8, 16, 17))
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
        n = x.name
        return self.let(self.random.choice((
            f"where({n} > 0.2, {n}, 0.3 * {n} - 0.14)", f"log10(2.0 + {n} ** 2)", f"{n} ** 3 / (1.0 + {n} ** 2)",
            f"clamp({n}, -0.9, 1.1)", f"stop_gradient({n}) * {n}", f"{n} + stop_gradient(tanh({n}))",
            f"min(max({n}, -1.2), softplus({n}))")), x.shape)

    def sample_norm(self, x):
        """Of enough elements, as batch_norm's."""
        groups = self.random.choice([g for g in range(1, min(x.channels, 8) + 1) if x.channels % g == 0])
        space = math.prod(x.spatial)
        makers = [f"layer_norm({x.name})"] if x.channels * space >= 6 else []
        makers += [f"group_norm({x.name}, {groups})"] if x.channels // groups * space >= 6 else []
        makers += [f"instance_norm({x.name})"] if space >= 6 else []
        return self.let(self.random.choice(makers), x.shape) if makers else x

    def moved(self, x):
        """Elements at other places, some left out or repeated."""
        kind, axis = self.random.randrange(5), self.random.randrange(1, len(x.shape))
        if kind == 0:
            start, step = self.random.randint(0, x.shape[axis] // 3), self.random.choice((1, 1, 2))
            shape = list(x.shape)
            shape[axis] = -(-(x.shape[axis] - start) // step)
            return self.let(f"slice({x.name}, axis = {axis}, from = {start}, step = {step})", shape)
        if kind == 1:
            order = [0, *self.random.sample(range(1, len(x.shape)), len(x.shape) - 1)]
            return self.let(f"transpose({x.name}, {order})", [x.shape[i] for i in order])
        if kind == 2:
            most = min(2, min(x.spatial) - 1)  # what a mirror can show
            pads = [[self.random.randint(0, most), self.random.randint(0, most)] for _ in x.spatial]
            spatial = [size + sum(pair) for size, pair in zip(x.spatial, pads)]
            if math.prod(x.shape[:2]) * math.prod(spatial) > ELEMENTS:
                return x
            return self.let(f"pad({x.name}, {pads}, mode = {self.random.choice(('zero', 'reflect', 'edge'))})", (*x.shape[:2], *spatial))
        if kind == 3 and x.channels % 2**len(x.spatial) == 0:
            return self.let(f"pixel_shuffle({x.name}, 2)", (self.batch, x.channels // 2**len(x.spatial), *(2 * size for size in x.spatial)))
        shape = list(x.shape)
        shape[axis] = 1
        mean = self.let(f"mean({x.name}, axes = {axis}, keep = true)", shape)
        spread = self.let(f"broadcast(tanh({mean.name}), {list(x.shape)})", x.shape)
        return self.let(f"{x.name} + {spread.name}", x.shape)

    def resampled(self, x):
        kind = self.random.randrange(5)
        sizes = [self.random.randint(1, size + 2) for size in x.spatial]
        mode = self.random.choice(("nearest", "linear"))
        if kind == 0:
            return self.let(f"adaptive_avg_pool({x.name}, {[min(a, b) for a, b in zip(sizes, x.spatial)]})",
                            (*x.shape[:2], *(min(a, b) for a, b in zip(sizes, x.spatial))))
        if kind == 1 and math.prod(x.shape[:2]) * math.prod(sizes) <= ELEMENTS:
            return self.let(f"resize({x.name}, {sizes}, mode = {mode})", (*x.shape[:2], *sizes))
        if kind == 2 and math.prod(x.shape) * 2**len(x.spatial) <= ELEMENTS:
            return self.let(f"upsample({x.name}, 2, mode = {mode})", (*x.shape[:2], *(2 * size for size in x.spatial)))
        if kind == 3:
            kernel = [min(size, self.random.choice((2, 3))) for size in x.spatial]
            counted = self.random.choice(("true", "false"))
            padding = [k // 2 for k in kernel]
            spatial = [size + 2 * p - k + 1 for size, p, k in zip(x.spatial, padding, kernel)]
            return self.let(f"avg_pool({x.name}, kernel = {kernel}, stride = 1, padding = {padding}, count_include_pad = {counted})",
                            (*x.shape[:2], *spatial))
        return self.let(f"blur_pool({x.name})", (*x.shape[:2], *(-(-size // 2) for size in x.spatial)))

    def reduced(self, x):
        """Of an axis, beside what it is of; an argmax as a feature, as it is no tensor of numbers."""
        axis = self.random.randrange(1, len(x.shape))
        kind = self.random.randrange(4)
        if kind == 0:
            return self.let(f"{x.name} - 0.5 * amax({x.name}, axes = {axis}, keep = true)", x.shape)
        if kind == 1 and x.shape[axis] > 1:
            return self.let(f"{x.name} / sqrt(0.5 + var({x.name}, axes = {axis}, keep = true, correction = {self.random.choice((0, 1))}))", x.shape)
        if kind == 2:
            shape = list(x.shape)
            shape[axis] = 1
            return self.let(f"{x.name} * (0.5 + 0.1 * reshape(argmax({x.name}, {axis}), {shape}))", x.shape)
        return self.let(f"0.25 * log_softmax({x.name})", x.shape)

    def reused(self, x):
        """One layer twice."""
        name = f"shared{self.count}"
        for reuse in ("", ", reuse = true"):
            kernel = [3 if size > 1 else 1 for size in x.spatial]
            x = self.let(f"conv({x.name}, {x.channels}, kernel = {kernel}, padding = {[k // 2 for k in kernel]}, name = \"{name}\"{reuse})", x.shape)
            x = self.activation(x)
        return x

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
        return self.let(f"dense({x.name}, {channels}{', bias = false' if self.chance(0.3) else ''})", (self.batch, channels))

    def finish(self, x):
        losses = [self.loss(x, "")]
        for i, y in enumerate(self.aside[:2]):
            losses.append(f"{self.random.choice((0.3, 0.5))} * " +
                          (self.loss(y, str(i)) if self.chance(0.4) else f"mean({y.name} * {y.name})"))
        if not self.aside and self.chance(0.2):
            losses.append(f"0.1 * mean(abs({x.name}))")
        self.lines.append("loss = " + " + ".join(losses))

    def loss(self, x, suffix):
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
                self.lines.append(f"output y{suffix} = {y.name}")
                return f"{self.random.choice(('mse', 'mae'))}({y.name}, {t})"
            return self.entropy(self.dense(features, classes), t, suffix)
        if kind == "pixels":
            return self.entropy(self.head(x, min(classes, 5)), t, suffix)
        y = self.head(x, self.random.choice((1, 1, 2, 3)))
        self.lines.append(f"output y{suffix} = {'sigmoid' if kind == 'mask' else 'tanh'}({y.name})")
        if kind == "mask":
            self.input(t, "mask", y.shape)
            self.lines.append(f"metric iou{suffix} = iou({y.name} > 0.0, {t} > 0.5)")
            return f"bce_with_logits({y.name}, {t})"
        self.input(t, "f32", y.shape)
        name = self.random.choice(("mse", "mae"))
        if kind == "image":
            return f"{name}({y.name}, {t})"
        self.input("w" + t, "mask", y.shape)
        return f"{name}({y.name}, {t}, where = w{t})"

    def head(self, x, channels):
        bias = ", bias = false" if self.chance(0.3) else ""
        return self.let(f"conv({x.name}, {channels}, kernel = 1{bias})", (self.batch, channels, *x.spatial))

    def entropy(self, logits, t, suffix):
        self.input(t, logits.channels, (self.batch, *logits.shape[2:]))
        self.lines.append(f"output y{suffix} = softmax({logits.name})")
        if self.chance(0.6):
            k = 2 if logits.channels > 2 and self.chance(0.3) else 1
            self.lines.append(f"metric accuracy{suffix} = accuracy({logits.name}, {t}, k = {k})")
        smoothing = ", smoothing = 0.1" if self.chance(0.2) else ""
        return f"softmax_cross_entropy({logits.name}, {t}{smoothing})"

    def draw_optimizer(self):
        decay = self.random.choice(("", "", ", weight_decay = 0.1", ', weight_decay = 0.1, no_decay = ["*.bias"]'))
        kind = self.random.randrange(6)
        if kind < 2:
            return f"sgd(lr = 0.5{decay})"
        if kind < 4:
            return f"sgd(lr = 0.5, momentum = 0.9{', nesterov = true' if self.chance(0.5) else ''}{decay})"
        return f"{'adam' if kind == 4 else 'adamw'}(lr = 0.05{decay})"

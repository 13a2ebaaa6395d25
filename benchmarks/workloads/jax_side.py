"""JAX's side, for the workloads at which it is strong: jitted, with donated state. Without convolutions."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax_parts import (
    Step,
    adam,
    adam_state,
    apply,
    attention,
    block,
    cross_entropy,
    draws,
    heads_of,
    ints,
    linear,
    mlp,
    norm,
    normed,
    run_block,
    run_mlp,
    trained,
    tree,
)  # fmt: skip
from serving import serve


def language(words: int, places: int, width: int, layers: int) -> Any:
    blocks = [block(width) for _ in range(layers)]
    tables = {"words": draws(words, width), "places": draws(places, width), "output": draws(width, words) * 0.02}
    return {**tables, "blocks": blocks, "norm": normed(width)}


def read(p: Any, x: Any, heads: int, causal: bool = True) -> Any:
    x = p["words"][x] + p["places"][: x.shape[1]]
    for each in p["blocks"]:
        x = run_block(each, x, heads, causal)
    return norm(p["norm"], x) @ p["output"]


def trained_language(words: int, width: int, heads: int, layers: int, batch: int, length: int) -> Step:
    data = ints(words, batch, length), ints(words, batch, length, seed=1)
    loss = lambda p, x, y: cross_entropy(read(p, x, heads), y)  # noqa: E731
    return trained(loss, language(words, length, width, layers), *data, optimizer="adamw")


def nanogpt() -> Step:
    return trained_language(65, 384, 6, 6, 4, 256)


def long_attention() -> Step:
    return trained_language(256, 256, 4, 2, 1, 2048)


def encoder_infer() -> Step:
    p, x = language(1000, 64, 384, 6), ints(1000, 1, 64)
    run = jax.jit(lambda p, x: read(p, x, 6, causal=False))
    return lambda: run(p, x)


def gpt_rope() -> Step:
    def rotate(x: Any) -> Any:
        half = x.shape[-1] // 2
        angles = jnp.arange(x.shape[-2])[:, None] * jnp.exp(jnp.arange(half) * (-np.log(10000.0) / half))
        a, b, sine, cosine = x[..., :half], x[..., half:], jnp.sin(angles), jnp.cos(angles)
        return jnp.concatenate([a * cosine - b * sine, a * sine + b * cosine], -1)

    def rms(p: Any, x: Any) -> Any:
        return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * p

    def loss(p: Any, x: Any, y: Any) -> Any:
        x = p["words"][x] + p["places"]
        for each in p["blocks"]:
            q, k, v = heads_of(apply(each["qkv"], rms(each["n1"], x)), 4)
            x = x + apply(each["merge"], attention(rotate(q), rotate(k), v, True))
            h = rms(each["n2"], x)
            x = x + (jax.nn.silu(h @ each["gate"]) * (h @ each["up"])) @ each["down"]
        return cross_entropy(norm(p["norm"], x) @ p["output"], y)

    def gated(width: int) -> Any:
        matrices = {"gate": draws(width, 3 * width), "up": draws(width, 3 * width), "down": draws(3 * width, width)}
        scaled = tree(lambda w: w * 0.05, matrices)
        ones = {"n1": jnp.ones(width), "n2": jnp.ones(width)}
        return {**scaled, **ones, "qkv": linear(width, 3 * width), "merge": linear(width, width)}

    p = {**language(256, 128, 256, 0), "blocks": [gated(256) for _ in range(4)]}
    return trained(loss, p, ints(256, 8, 128), ints(256, 8, 128, seed=1), optimizer="adamw")


def lora() -> Step:
    fixed = language(256, 128, 256, 4)
    low = [{"down": draws(256, 8) * 0.02, "up": jnp.zeros((8, 768))} for _ in range(4)]

    def loss(low: Any, fixed: Any, x: Any, y: Any) -> Any:
        x = fixed["words"][x] + fixed["places"]
        for p, more in zip(fixed["blocks"], low, strict=True):
            h = norm(p["n1"], x)
            q, k, v = heads_of(apply(p["qkv"], h) + h @ more["down"] @ more["up"], 4)
            x = x + apply(p["merge"], attention(q, k, v, True))
            x = x + apply(p["down"], jax.nn.gelu(apply(p["up"], norm(p["n2"], x)), approximate=False))
        return cross_entropy(norm(fixed["norm"], x) @ fixed["output"], y)

    return trained(loss, low, fixed, ints(256, 4, 128), ints(256, 4, 128, seed=1), optimizer="adamw")


def generated(batch: int, width: int, heads: int, layers: int, words: int, places: int, count: int) -> Step:
    p = language(words, places, width, layers)

    def step(p: Any, caches: Any, word: Any, place: Any) -> Any:
        x, kept = p["words"][word] + p["places"][place], []
        for each, (keys, values) in zip(p["blocks"], caches, strict=True):
            q, k, v = apply(each["qkv"], norm(each["n1"], x)).reshape(batch, 3, heads, 1, -1).swapaxes(0, 1)
            keys = lax.dynamic_update_slice(keys, k, (0, 0, place, 0))
            values = lax.dynamic_update_slice(values, v, (0, 0, place, 0))
            scores = (q @ keys.swapaxes(-1, -2)) / (width // heads) ** 0.5
            scores = jnp.where(jnp.arange(places) <= place, scores, -jnp.inf)
            x = x + apply(each["merge"], (jax.nn.softmax(scores) @ values).reshape(batch, width))
            x = x + apply(each["down"], jax.nn.gelu(apply(each["up"], norm(each["n2"], x)), approximate=False))
            kept.append((keys, values))
        return (norm(p["norm"], x) @ p["output"]).argmax(-1), kept

    run = jax.jit(step, donate_argnums=1)
    empty = jnp.zeros((batch, heads, places, width // heads))
    state = [[(empty + 0, empty + 0) for _ in range(layers)]]

    def generate() -> Any:
        word, written = jnp.zeros(batch, jnp.int32), []
        for place in range(count):
            word, state[0] = run(p, state[0], word, place)
            written.append(word)
        return jnp.stack(written)

    return generate


def gpt_generate() -> Step:
    return generated(1, 384, 6, 6, 65, 256, 64)


def generate_batch() -> Step:
    return generated(8, 256, 4, 4, 1000, 128, 64)


def lstm_tagger() -> Step:
    def direction() -> Any:
        return {"x": linear(100, 512), "h": draws(128, 512) * 0.05}

    def over(p: Any, x: Any) -> Any:
        def cell(carry: Any, a: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(a + h @ p["h"], 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), h

        return lax.scan(cell, (jnp.zeros((32, 128)),) * 2, apply(p["x"], x))[1]

    def loss(p: Any, x: Any, y: Any) -> Any:
        x = p["words"][x].swapaxes(0, 1)
        both = jnp.concatenate([over(p["there"], x), over(p["back"], x[::-1])[::-1]], -1)
        return cross_entropy(apply(p["output"], both.swapaxes(0, 1)), y)

    p = {"words": draws(5000, 100), "there": direction(), "back": direction(), "output": linear(256, 20)}
    return trained(loss, p, ints(5000, 32, 40), ints(20, 32, 40))


def big_vocab() -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        return cross_entropy(apply(p["output"], jnp.tanh(apply(p["dense"], p["table"][x].reshape(128, -1)))), y)

    p = {"table": draws(30000, 128), "dense": linear(512, 256), "output": linear(256, 30000)}
    return trained(loss, p, ints(30000, 128, 4), ints(30000, 128, seed=1))


def word2vec() -> Step:
    def loss(p: Any, center: Any, near: Any, noise: Any) -> Any:
        c = p["inner"][center]
        right = jax.nn.log_sigmoid((c * p["outer"][near]).sum(-1))
        return -(right + jax.nn.log_sigmoid(-(p["outer"][noise] @ c[:, :, None])[..., 0]).sum(-1)).mean()

    p = {"inner": draws(20000, 100), "outer": draws(20000, 100)}
    data = ints(20000, 512), ints(20000, 512, seed=1), ints(20000, 512, 5, seed=2)
    return trained(loss, p, *data, optimizer="sgd")


def vit_tiny() -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        x = x.reshape(32, 3, 8, 4, 8, 4).transpose(0, 2, 4, 1, 3, 5).reshape(32, 64, 48)
        x = apply(p["patches"], x) + p["places"]
        for each in p["blocks"]:
            x = run_block(each, x, 3, causal=False)
        return cross_entropy(apply(p["output"], norm(p["norm"], x).mean(1)), y)

    p = {"patches": linear(48, 192), "places": draws(64, 192), "norm": normed(192), "output": linear(192, 10)}
    p["blocks"] = [block(192) for _ in range(6)]
    return trained(loss, p, draws(32, 3, 32, 32), ints(10, 32), optimizer="adamw")


def ppo() -> Step:
    p = {"policy": mlp(8, 64, 64, 4), "value": mlp(8, 64, 64, 1)}
    states, actions, rewards = draws(129, 16, 8), ints(4, 128, 16), draws(128, 16, seed=1)
    alive, order = (draws(128, 16, seed=2) < 2).astype(jnp.float32), np.random.default_rng(0)

    def logs_of(p: Any, states: Any, actions: Any) -> Any:
        logs = jax.nn.log_softmax(run_mlp(p["policy"], states, jnp.tanh))
        return logs, jnp.take_along_axis(logs, actions[..., None], -1)[..., 0]

    @jax.jit
    def look(p: Any, states: Any, actions: Any, rewards: Any, alive: Any) -> Any:
        values = run_mlp(p["value"], states, jnp.tanh)[..., 0]
        surprise = rewards + 0.99 * values[1:] * alive - values[:-1]

        def back(ahead: Any, row: Any) -> Any:
            ahead = row[0] + 0.95 * 0.99 * row[1] * ahead
            return ahead, ahead

        gains = lax.scan(back, jnp.zeros(16), (surprise, alive), reverse=True)[1]
        columns = states[:-1], actions, logs_of(p, states[:-1], actions)[1], gains, gains + values[:-1]
        return [column.reshape(2048, *column.shape[2:]) for column in columns]

    def loss(p: Any, states: Any, actions: Any, before: Any, gains: Any, worth: Any) -> Any:
        logs, chosen = logs_of(p, states, actions)
        ratio = jnp.exp(chosen - before)
        gains = (gains - gains.mean()) / (gains.std(ddof=1) + 1e-8)
        better = jnp.minimum(ratio * gains, jnp.clip(ratio, 0.8, 1.2) * gains).mean()
        wrong = ((run_mlp(p["value"], states, jnp.tanh)[:, 0] - worth) ** 2).mean()
        return -better + 0.5 * wrong + 0.01 * (jnp.exp(logs) * logs).sum(-1).mean()

    @jax.jit
    def update(p: Any, state: Any, columns: Any, rows: Any) -> Any:
        slopes = jax.grad(loss)(p, *(column[rows] for column in columns))
        length = jnp.sqrt(sum((s * s).sum() for s in jax.tree.leaves(slopes)))
        return adam(p, tree(lambda s: s * jnp.minimum(1.0, 0.5 / (length + 1e-6)), slopes), state, 3e-4)

    kept = [p, adam_state(p)]

    def step() -> Any:
        columns = look(kept[0], states, actions, rewards, alive)
        for _ in range(4):
            for rows in np.split(order.permutation(2048).astype(np.int32), 4):
                kept[0], kept[1] = update(kept[0], kept[1], columns, rows)
        return kept[0]

    return step


def dqn() -> Step:
    online = mlp(4, 64, 64, 2)

    def loss(p: Any, target: Any, state: Any, action: Any, reward: Any, after: Any) -> Any:
        wanted = reward + 0.99 * run_mlp(target, after).max(-1)
        far = jnp.abs(jnp.take_along_axis(run_mlp(p, state), action[:, None], 1)[:, 0] - wanted)
        return jnp.where(far < 1, 0.5 * far * far, far - 0.5).mean()

    @jax.jit
    def update(p: Any, target: Any, state: Any, *data: Any) -> Any:
        p, state = adam(p, jax.grad(loss)(p, target, *data), state)
        return p, tree(lambda a, b: 0.995 * a + 0.005 * b, target, p), state

    data = draws(64, 4), ints(2, 64), draws(64, seed=1), draws(64, 4, seed=2)
    kept = [(online, tree(jnp.copy, online), adam_state(online))]

    def step() -> Any:
        kept[0] = update(*kept[0], *data)
        return kept[0]

    return step


def sac() -> Step:
    p = {"actor": mlp(17, 256, 256, 12), "critics": [mlp(23, 256, 256, 1) for _ in "12"], "heat": jnp.zeros(1)}

    def act(actor: Any, state: Any, noise: Any) -> Any:
        mean, spread = jnp.split(run_mlp(actor, state), 2, -1)
        spread = jnp.clip(spread, -5, 2)
        raw = mean + jnp.exp(spread) * noise
        log = (-0.5 * noise * noise - spread - 0.919).sum(-1) - (2 * (0.693 - raw - jax.nn.softplus(-2 * raw))).sum(-1)
        return jnp.tanh(raw), log

    def worth_of(critics: Any, both: Any) -> Any:
        return jnp.minimum(run_mlp(critics[0], both)[:, 0], run_mlp(critics[1], both)[:, 0])

    @jax.jit
    def update(p: Any, targets: Any, states: Any, data: Any) -> Any:
        state, action, reward, after, noise, other = data
        then, log = act(p["actor"], after, noise)
        wanted = reward + 0.99 * (worth_of(targets, jnp.concatenate([after, then], -1)) - jnp.exp(p["heat"]) * log)
        both = jnp.concatenate([state, action], -1)
        wrong = lambda critics: sum(((run_mlp(c, both)[:, 0] - wanted) ** 2).mean() for c in critics)  # noqa: E731
        critics, s1 = adam(p["critics"], jax.grad(wrong)(p["critics"]), states[0], 3e-4)

        def poor(actor: Any) -> Any:
            now, log = act(actor, state, other)
            return (jnp.exp(p["heat"]) * log - worth_of(critics, jnp.concatenate([state, now], -1))).mean(), log

        slopes, log = jax.grad(poor, has_aux=True)(p["actor"])
        actor, s2 = adam(p["actor"], slopes, states[1], 3e-4)
        heat, s3 = adam(p["heat"], jax.grad(lambda heat: (-heat * (log - 6.0)).mean())(p["heat"]), states[2], 3e-4)
        targets = tree(lambda a, b: 0.995 * a + 0.005 * b, targets, critics)
        return {"actor": actor, "critics": critics, "heat": heat}, targets, (s1, s2, s3)

    noises = draws(256, 6, seed=4), draws(256, 6, seed=5)
    data = draws(256, 17), draws(256, 6, seed=1), draws(256, seed=2), draws(256, 17, seed=3), *noises
    kept = [(p, tree(jnp.copy, p["critics"]), tuple(adam_state(p[name]) for name in ("critics", "actor", "heat")))]

    def step() -> Any:
        kept[0] = update(*kept[0], data)
        return kept[0]

    return step


def hvp() -> Step:
    p, x, y = mlp(64, 512, 512, 10), draws(256, 64), ints(10, 256)
    slope = jax.grad(lambda p, x, y: cross_entropy(run_mlp(p, x, jnp.tanh), y))
    run = jax.jit(lambda p, v, x, y: jax.jvp(lambda p: slope(p, x, y), (p,), (v,))[1])
    direction = tree(jnp.ones_like, p)
    return lambda: run(p, direction, x, y)


def pinn() -> Step:
    def loss(p: Any, x: Any, t: Any) -> Any:
        u = lambda x, t: run_mlp(p, jnp.concatenate([x, t], 1), jnp.tanh)  # noqa: E731
        slope = lambda x: jax.jvp(lambda x: u(x, t), (x,), (jnp.ones_like(x),))[1]  # noqa: E731
        in_time = jax.jvp(lambda t: u(x, t), (t,), (jnp.ones_like(t),))[1]
        return ((in_time - 0.1 * jax.jvp(slope, (x,), (jnp.ones_like(x),))[1]) ** 2).mean()

    return trained(loss, mlp(2, 64, 64, 64, 1), draws(1000, 1), draws(1000, 1, seed=1))


def neural_ode() -> Step:
    def loss(p: Any, x: Any, y: Any) -> Any:
        f = lambda x: run_mlp(p, x, jnp.tanh)  # noqa: E731

        def one(x: Any, _: Any) -> Any:
            a = f(x)
            b = f(x + 0.025 * a)
            c = f(x + 0.025 * b)
            return x + 0.05 / 6 * (a + 2 * b + 2 * c + f(x + 0.05 * c)), None

        return ((lax.scan(one, x, length=20)[0] - y) ** 2).mean()

    return trained(loss, mlp(2, 64, 2), draws(128, 2), draws(128, 2, seed=1))


def maml() -> Step:
    wrong = lambda p, x, y: ((run_mlp(p, x, jnp.tanh) - y) ** 2).mean()  # noqa: E731

    def task(p: Any, x: Any, y: Any) -> Any:
        q = p
        for _ in range(3):
            q = tree(lambda a, s: a - 0.01 * s, q, jax.grad(wrong)(q, x[:10], y[:10]))
        return wrong(q, x[10:], y[10:])

    loss = lambda p, x, y: jax.vmap(lambda x, y: task(p, x, y))(x, y).mean()  # noqa: E731
    return trained(loss, mlp(1, 40, 40, 1), draws(4, 20, 1), draws(4, 20, 1, seed=1))


def persample() -> Step:
    slope = jax.grad(lambda p, x, y: cross_entropy(run_mlp(p, x[None], jnp.tanh), y[None]))

    @jax.jit
    def run(p: Any, x: Any, y: Any) -> Any:
        slopes = jax.vmap(slope, (None, 0, 0))(p, x, y)
        lengths = jnp.sqrt(sum((s * s).reshape(64, -1).sum(1) for s in jax.tree.leaves(slopes)))
        factors = jnp.minimum(1 / (lengths + 1e-6), 1.0)
        return tree(lambda s: jnp.tensordot(factors, s, 1) / 64, slopes)

    p, x, y = mlp(784, 128, 10), draws(64, 784), ints(10, 64)
    return lambda: run(p, x, y)


def kmeans() -> Step:
    @jax.jit
    def run(points: Any, centers: Any) -> Any:
        def one(centers: Any, _: Any) -> Any:
            near = ((centers * centers).sum(1) - 2 * points @ centers.T).argmin(1)
            sums, counts = jax.ops.segment_sum(points, near, 64), jax.ops.segment_sum(jnp.ones(4096), near, 64)
            return sums / jnp.maximum(counts, 1.0)[:, None], None

        return lax.scan(one, centers, length=10)[0]

    points, first = draws(4096, 32), draws(64, 32, seed=1)
    return lambda: run(points, first)


def kalman() -> Step:
    move, see = jnp.eye(4) + 0.1 * jnp.roll(jnp.eye(4), 2, 1), jnp.eye(4)[:2]

    @jax.jit
    def run(seen: Any) -> Any:
        def one(carry: Any, row: Any) -> Any:
            x, p = carry
            x, p = x @ move.T, move @ p @ move.T + 0.01 * jnp.eye(4)
            gain = jnp.linalg.solve(see @ p @ see.T + 0.1 * jnp.eye(2), see @ p).swapaxes(-1, -2)
            x = x + (gain @ (row - x @ see.T)[..., None])[..., 0]
            return (x, (jnp.eye(4) - gain @ see) @ p), x

        return lax.scan(one, (jnp.zeros((32, 4)), jnp.tile(jnp.eye(4), (32, 1, 1))), seen)[1]

    seen = draws(200, 32, 2)
    return lambda: run(seen)


def tabular() -> Step:
    def batch_norm(p: Any, x: Any) -> Any:
        mean = x.mean(0)
        return (x - mean) * lax.rsqrt(((x - mean) ** 2).mean(0) + 1e-5) * p["scale"] + p["shift"]

    def loss(p: Any, kinds: Any, numbers: Any, y: Any) -> Any:
        columns = [table[kinds[:, place]] for place, table in enumerate(p["tables"])]
        x = jnp.concatenate([*columns, numbers], 1)
        for layer, scale in zip(p["layers"][:-1], p["norms"], strict=True):
            x = jax.nn.relu(batch_norm(scale, apply(layer, x)))
        z = apply(p["layers"][-1], x)[:, 0]
        return (jax.nn.softplus(z) - y * z).mean()

    p = {"tables": [draws(1000, 16) for _ in range(20)], "layers": mlp(330, 256, 128, 1)}
    data = ints(1000, 1024, 20), draws(1024, 10), ints(2, 1024).astype(jnp.float32)
    return trained(loss, {**p, "norms": [normed(256), normed(128)]}, *data)


def factors() -> Step:
    def loss(p: Any, user: Any, film: Any, stars: Any) -> Any:
        guess = (p["users"][user] * p["films"][film]).sum(1) + p["fair"][user, 0] + p["good"][film, 0]
        return ((guess - stars) ** 2).mean()

    p = {"users": draws(6000, 64), "films": draws(4000, 64), "fair": draws(6000, 1), "good": draws(4000, 1)}
    return trained(loss, p, ints(6000, 2048), ints(4000, 2048, seed=1), draws(2048))


def deepsets() -> Step:
    loss = lambda p, x, y: cross_entropy(run_mlp(p["whole"], run_mlp(p["each"], x).max(1)), y)  # noqa: E731
    return trained(loss, {"each": mlp(3, 128, 128), "whole": mlp(128, 128, 10)}, draws(32, 256, 3), ints(10, 32))


def edges(nodes: int, count: int) -> Any:
    return jnp.asarray(np.random.default_rng(0).integers(0, nodes, (2, count)).astype(np.int32))


def gcn() -> Step:
    source, target = edges(2708, 10556)
    x, scale = (draws(2708, 1433) > 2).astype(jnp.float32), jnp.abs(draws(10556))

    def loss(p: Any, x: Any, y: Any, source: Any, target: Any, scale: Any) -> Any:
        def spread(h: Any) -> Any:
            return jax.ops.segment_sum(h[source] * scale[:, None], target, 2708)

        return cross_entropy(spread(apply(p[1], jax.nn.relu(spread(apply(p[0], x)))))[:140], y)

    return trained(loss, mlp(1433, 16, 7), x, ints(7, 140), source, target, scale)


def gat_edges() -> Step:
    source, target = edges(1000, 8000)

    def loss(p: Any, x: Any, y: Any, source: Any, target: Any) -> Any:
        h = apply(p["dense"], x).reshape(-1, 4, 16)
        left, right = ((h * p[side]).sum(-1) for side in ("left", "right"))
        weights = jnp.exp(jax.nn.leaky_relu(left[source] + right[target], 0.2))
        total = jax.ops.segment_sum(weights, target, 1000) + 1e-9
        sent = jax.ops.segment_sum(h[source] * weights[..., None], target, 1000)
        return cross_entropy(apply(p["output"], jax.nn.elu(sent / total[..., None]).reshape(1000, 64)), y)

    p = {"dense": linear(64, 64), "output": linear(64, 7), "left": draws(4, 16) * 0.1, "right": draws(4, 16) * 0.1}
    return trained(loss, p, draws(1000, 64), ints(7, 1000), source, target)


WORKLOADS = {
    made.__name__: made
    for made in (
        nanogpt, gpt_rope, long_attention, lora, gpt_generate, generate_batch, encoder_infer, lstm_tagger, big_vocab,
        word2vec, vit_tiny, ppo, dqn, sac, hvp, pinn, neural_ode, maml, persample, kmeans, kalman, tabular, factors,
        deepsets, gcn, gat_edges,
    )
}  # fmt: skip

if __name__ == "__main__":
    serve(WORKLOADS, jax.block_until_ready)

#!/usr/bin/env python3
"""PyTorch beside Cortex on a GPU, on the cases that `gpu --export` wrote.

    gpu_torch.py CASES [--beside ROWS.json] [--json FILE] [--rounds N] [--device cuda|cpu]

With the rows that `gpu --json` wrote it ends with the ratios to them.

Systems: torch_node, one node after the other; torch_level, batched by level; torch_graph, the same captured into a CUDA
graph once a batch, whose replay leaves out what depends on the structure, so that its time is its kernels'; torch_rnn,
torch.nn's LSTM and GRU, which are cuDNN's. Each is first held against the states that are right. Times are of whole
calls, from the structure to the roots' states on the host; of torch_graph only the replay, by the device's clock.
device_bytes is the most memory that a system held at a time beside the weights: of torch_graph for all its batches.
"""
import argparse
import json
import pathlib
import statistics
import struct
import sys
import time

import torch

TYPES = {"F32": torch.float32, "I32": torch.int32}


def read_safetensors(path):
    """The tensors of a file by name, as they were written."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=TYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


class Batch:
    """A batch's nodes as lists; children and roots by their place in it, -1 where there is none."""

    def __init__(self, case, number):
        begin, end = case["nodes.begin"][number:number + 2].tolist()
        self.word, self.left, self.right = (case[f"nodes.{name}"][begin:end].tolist() for name in ("word", "left", "right"))
        self.roots = case["roots"][number].tolist()
        self.states = case["states"][number]

    def levels(self):
        """Rows sorted by height: the order, where each node stands in it, and where each level begins."""
        height = [0] * len(self.word)
        for node, (left, right) in enumerate(zip(self.left, self.right)):  # children come first
            height[node] = 1 + max(height[left] if left >= 0 else -1, height[right] if right >= 0 else -1)
        order = sorted(range(len(height)), key=height.__getitem__)
        place = [0] * len(order)
        for row, node in enumerate(order):
            place[node] = row
        begin = [row for row, node in enumerate(order) if row == 0 or height[node] != height[order[row - 1]]]
        return order, place, begin + [len(order)]


class Model:
    """A model's weights on the device, gates that are computed together side by side, and its equations on rows."""

    def __init__(self, name, hidden, case, device):
        self.name, self.H, self.device = name, hidden, device

        def matrix(*names, columns=hidden):
            return torch.cat([case[n].reshape(-1, columns) for n in names]).to(device).t().contiguous()

        def vector(*names):
            return torch.cat([case[n] for n in names]).to(device)

        self.emb = case["Emb_v" if name == "mvrnn" else "Emb"].reshape(-1, hidden).to(device)
        if name == "treefc":
            self.W, self.b = matrix("W", columns=2 * hidden), vector("b")
        elif name == "dagrnn":
            self.U, self.b = matrix("U"), vector("b")
        elif name == "treegru":
            self.W, self.b_leaf = matrix("W_z", "W_h"), vector("b_z", "b_h")
            self.U, self.b, self.U_h, self.b_h = matrix("U_r", "U_z"), vector("b_r", "b_z"), matrix("U_h"), vector("b_h")
        elif name == "treelstm":
            self.W, self.U = matrix("W_i", "W_o", "W_u"), matrix("U_i", "U_o", "U_u")
            self.b, self.U_f, self.b_f = vector("b_i", "b_o", "b_u"), matrix("U_f"), vector("b_f")
        elif name == "mvrnn":
            self.W, self.U = matrix("W_v", columns=2 * hidden), matrix("W_M", columns=2 * hidden).t().contiguous()
            self.emb_M = case["Emb_M"].reshape(-1, hidden, hidden).to(device).transpose(1, 2).contiguous()
        else:
            kind = torch.nn.LSTM if name == "lstm" else torch.nn.GRU
            self.rnn = kind(hidden, hidden).to(device)
            for weight in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
                getattr(self.rnn, weight).data.copy_(case[weight].reshape(getattr(self.rnn, weight).shape))

    def leaves(self, words):
        """The states of leaves, [leaf, ...]."""
        x = self.emb.index_select(0, words)
        if self.name == "treefc":
            return [x]
        if self.name == "dagrnn":
            return [torch.tanh(x + self.b)]
        if self.name == "treegru":
            z, h = torch.addmm(self.b_leaf, x, self.W).chunk(2, 1)
            return [(1 - z.sigmoid()) * h.tanh()]
        if self.name == "treelstm":
            i, o, u = torch.addmm(self.b, x, self.W).chunk(3, 1)
            c = i.sigmoid() * u.tanh()
            return [o.sigmoid() * c.tanh(), c]
        return [x, self.emb_M.index_select(0, words)]

    def inner(self, words, left, right):
        """The states of nodes from those of their children, [node, ...]. `words` only where inner nodes have some."""
        if self.name == "treefc":
            return [torch.addmm(self.b, torch.cat([left[0], right[0]], 1), self.W).relu_()]
        if self.name == "dagrnn":
            return [torch.addmm(self.emb.index_select(0, words) + self.b, left[0] + right[0], self.U).tanh_()]
        if self.name == "treegru":
            s = left[0] + right[0]
            r, z = torch.addmm(self.b, s, self.U).sigmoid_().chunk(2, 1)
            return [torch.lerp(torch.addmm(self.b_h, r * s, self.U_h).tanh_(), s, z)]
        if self.name == "treelstm":
            i, o, u = torch.addmm(self.b, left[0] + right[0], self.U).chunk(3, 1)
            f_l, f_r = torch.addmm(self.b_f, torch.cat([left[0], right[0]]), self.U_f).sigmoid_().chunk(2)
            c = i.sigmoid() * u.tanh() + f_l * left[1] + f_r * right[1]
            return [o.sigmoid() * c.tanh(), c]
        both = torch.cat([torch.bmm(left[1], right[0].unsqueeze(2)), torch.bmm(right[1], left[0].unsqueeze(2))], 1)
        return [torch.mm(both.squeeze(2), self.W).tanh_(), torch.matmul(self.U, torch.cat([left[1], right[1]], 1))]

    def zero(self):
        return [torch.zeros(1, self.H, device=self.device)]


class Node:
    """One node after the other."""

    name = "torch_node"

    def __init__(self, model):
        self.model = model

    def run(self, batch):
        states = []
        for node, (left, right) in enumerate(zip(batch.left, batch.right)):
            words = torch.tensor([max(batch.word[node], 0)], device=self.model.device)
            if left < 0 and right < 0:
                states.append(self.model.leaves(words))
                continue
            children = [states[child] if child >= 0 else self.model.zero() for child in (left, right)]
            states.append(self.model.inner(words, *children))
        return torch.cat([states[root][0] for root in batch.roots]).cpu()


class Level:
    """Batched by level; states in one tensor, [row, ...], with a row of zeros at its end for absent children."""

    name = "torch_level"

    def __init__(self, model):
        self.model = model

    def lay_out(self, batch):
        order, place, begin = batch.levels()
        rows = len(order)

        def row(child):
            return place[child] if child >= 0 else rows

        index = torch.tensor([[max(batch.word[n], 0) for n in order], [row(batch.left[n]) for n in order],
                              [row(batch.right[n]) for n in order]]).to(self.model.device)
        roots = torch.tensor([place[root] for root in batch.roots]).to(self.model.device)
        return index, roots, begin

    def compute(self, index, roots, begin):
        words, left, right = index
        leaves = self.model.leaves(words[:begin[1]])
        states = [torch.empty((begin[-1] + 1, *s.shape[1:]), device=s.device) for s in leaves]
        for state, own in zip(states, leaves):
            state[:begin[1]] = own
            state[-1].zero_()
        for first, last in zip(begin[1:], begin[2:]):
            children = [[s.index_select(0, child[first:last]) for s in states] for child in (left, right)]
            for state, own in zip(states, self.model.inner(words[first:last], *children)):
                state[first:last] = own
        return states[0].index_select(0, roots)

    def run(self, batch):
        return self.compute(*self.lay_out(batch)).cpu()


class Graph(Level):
    """The same as a CUDA graph; of each batch its own, since the structure is in it."""

    name = "torch_graph"

    def __init__(self, model):
        super().__init__(model)
        self.graphs = {}

    def capture(self, batch):
        laid_out = self.lay_out(batch)
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.compute(*laid_out)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.compute(*laid_out)
        return graph, result, laid_out

    def of(self, batch):
        if id(batch) not in self.graphs:
            self.graphs[id(batch)] = self.capture(batch)
        return self.graphs[id(batch)]

    def run(self, batch):
        graph, result, _ = self.of(batch)
        graph.replay()
        return result.cpu()

    def replay_us(self, batch):
        graph, _, _ = self.of(batch)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3


class Rnn:
    """torch.nn's, all steps of all sequences in one call."""

    name = "torch_rnn"

    def __init__(self, model):
        self.model = model

    def run(self, batch):
        sequences = []
        for root in batch.roots:
            words, node = [], root
            while node >= 0:
                words.append(batch.word[node])
                node = batch.left[node]
            sequences.append(words[::-1])
        words = torch.tensor(sequences).to(self.model.device).t()
        _, last = self.model.rnn(self.model.emb[words])
        return (last[0] if self.model.name == "lstm" else last)[0].cpu()


def time_case(path, options):
    name, hidden, size = path.stem.rsplit("-", 2)
    case = read_safetensors(path)
    batches = [Batch(case, b) for b in range(len(case["nodes.begin"]) - 1)]
    model = Model(name, int(hidden), case, options.device)
    if name in ("lstm", "gru"):
        systems = [Rnn(model)]
    else:
        systems = [Node(model), Level(model)] + ([Graph(model)] if options.device == "cuda" else [])
    few = int(size) <= 10

    def batches_of(system):
        """Node by node one of many roots takes up to a second: two of them are enough."""
        return 2 if system.name == "torch_node" and not few else len(batches)

    times, errors = {s.name: [] for s in systems}, {}
    peaks = {}
    for system in systems:
        on_gpu = options.device == "cuda"
        before = torch.cuda.memory_allocated() if on_gpu else 0
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        errors[system.name] = max(float((system.run(b) - b.states).abs().max()) for b in batches[:batches_of(system)])
        peaks[system.name] = torch.cuda.max_memory_allocated() - before if on_gpu else None
    for turn in range(options.rounds):
        for system in systems:
            if system.name == "torch_node" and turn >= (3 if few else 1):
                continue
            for batch in batches[:batches_of(system)]:
                start = time.perf_counter()
                system.run(batch)
                spent = (time.perf_counter() - start) * 1e6
                times[system.name].append(system.replay_us(batch) if isinstance(system, Graph) else spent)
    rows = []
    print(f"\n{name}, hidden {hidden}, batch {size}")
    for system in systems:
        scale = max(1.0, float(case["states"].abs().max()))
        right = errors[system.name] <= 1e-4 * scale
        row = {"model": name, "hidden": int(hidden), "batch": int(size), "system": system.name,
               "median_us": statistics.median(times[system.name]), "min_us": min(times[system.name]),
               "runs": len(times[system.name]), "max_abs_err": errors[system.name],
               "device_bytes": peaks[system.name]}
        print(f"  {system.name:18} {row['median_us']:9.1f} {row['min_us']:9.1f} us, error {row['max_abs_err']:.1e}"
              + ("" if right else "  WRONG"))
        rows.append(row)
    return rows, all(errors[s.name] <= 1e-4 * max(1.0, float(case["states"].abs().max())) for s in systems)


def write_rows(path, rows):
    """Beside the file first: it is whole at all times, whatever stops this."""
    part = path.with_name(path.name + ".part")
    part.write_text("[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n]\n")
    part.replace(path)


def print_ratios(rows, beside):
    """How many times faster Cortex is: end to end than PyTorch's calls, its kernel than the replay of a graph."""
    ours = {(r["model"], r["hidden"], r["batch"]): r for r in beside if r["system"] == "cortex"}
    print("\nCortex beside PyTorch, median us; times faster end to end, and the kernel than a graph's replay")
    for row in rows:
        own = ours.get((row["model"], row["hidden"], row["batch"]))
        if own:
            key = "kernel_us" if row["system"] == "torch_graph" else "median_us"
            print(f"  {row['model']:9} {row['hidden']:4} {row['batch']:3}  {key:9} {own[key]:9.1f}   {row['system']:12}"
                  f"{row['median_us']:10.1f}  {row['median_us'] / own[key]:6.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=pathlib.Path)
    parser.add_argument("--beside", type=pathlib.Path)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("gpu_torch.py: PyTorch sees no GPU")
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    sys.stdout.reconfigure(line_buffering=True)
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name() if options.device == 'cuda' else 'CPU'}")
    rows, right = [], True
    for path in sorted(options.cases.glob("*.safetensors")):
        more, fine = time_case(path, options)
        rows += more
        right = right and fine
        if options.json:
            write_rows(options.json, rows)
    if options.beside:
        print_ratios(rows, json.loads(options.beside.read_text()))
    sys.exit(0 if right else 1)


if __name__ == "__main__":
    main()

"""A .pnet model as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from pnet import _library as library
from pnet.model import Model
from pnet.session import Session
from pnet.torch import _device, _sums


class _Running:
    """A session where the parameters lie, for tensors there. On a GPU its work is that of the current stream."""

    def __init__(self, model: Model, device: torch.device, precision: str, seed: int):
        self.device, self.model, self._home = device, model, _device.home(device)
        if self._home is None:
            self._session = model.session(seed=seed)
            return
        with _device.own_errors():
            self._session = model.session(f"cuda:{device.index}", precision, seed=seed, arrays="device",
                                          stream=self._home.cuda_stream, allocator=_device.allocator(device.index))

    def call(self, name: str, *arguments, **named):
        """A method of the session, with arrays that _lent made."""
        with _device.on_home(self._home), _device.own_errors():
            return getattr(self._session, name)(*arguments, **named)

    @staticmethod
    def _lent(given):
        """A tensor as a session takes it: on the CPU as an array of NumPy, which has its memory."""
        if not isinstance(given, Tensor):
            return given
        return given.detach().contiguous() if given.is_cuda else given.detach().numpy()

    def bind(self, batch: Mapping[str, Tensor]) -> None:
        for name, value in batch.items():
            if isinstance(value, Tensor) and value.device != self.device:
                raise library.refuse(f"{name} is on {value.device}, expected {self.device}, where the network is")
        kept = {name: self._lent(value) for name, value in batch.items()}
        self.call("bind", kept)

    def set_weight(self, name: str, value: Tensor) -> None:
        self.call("set_weight", name, self._lent(value))

    def backward(self, gradients: Mapping[str, Tensor]) -> None:
        kept = {name: self._lent(value.contiguous()) for name, value in gradients.items()}
        self.call("backward", kept)

    def copy_weights(self, source: _Running) -> None:
        self.call("copy_weights", source._session)

    def read(self, method: str, *name: str, like: Sequence[int]) -> Tensor:
        """What a method of the session fills, of this shape."""
        found = torch.empty(like, dtype=torch.float32, device=self.device)
        self.call(method, *name, out=self._lent(found))
        return found


class _Once(torch.autograd.Function):
    """Gradients as they are. Their own differentiation is refused, of constants too: PyTorch's once_differentiable would leave it
    out of a sum without a word where the gradient of the result is a constant, as it mostly is."""

    @staticmethod
    def forward(ctx, anchor: Tensor, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients

    @staticmethod
    def backward(ctx, *_):
        raise RuntimeError("pnet.torch.Network has no second derivative: its gradient was differentiated again "
                           "(create_graph=True)")


def _once(gradients: Sequence[Tensor]) -> Sequence[Tensor]:
    """What a backward returns, whatever it was computed of."""
    if not torch.is_grad_enabled():
        return gradients
    return _Once.apply(torch.empty(0, requires_grad=True), *(g.detach() for g in gradients))


class _Losses(torch.autograd.Function):
    """The sum of the losses; its gradients are there when the sum is, because a session computes both at once."""

    @staticmethod
    def forward(ctx, network: Network, batch, *parameters: Tensor) -> Tensor:
        loss, gradients = network._gradients(batch)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    def backward(ctx, gradient: Tensor):
        return None, None, *_once([gradient.detach() * known for known in ctx.saved_tensors])


class _Outputs(torch.autograd.Function):
    """Outputs of a model, for losses of one's own. A session keeps what backward needs of its last pass alone."""

    @staticmethod
    def forward(ctx, network: Network, batch, fields: list[str], *differentiated: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.network, ctx.turn = network, network._pass(batch)
        ctx.fields = {name: batch[name].shape for name in fields}
        return network._read()

    @staticmethod
    def backward(ctx, *gradients: Tensor | None):
        return None, None, None, *_once(ctx.network._back(ctx.turn, gradients, ctx.fields))


class Network(nn.Module):
    """A model whose weights are parameters by the names that pnetc gives them, and running statistics of norms buffers: a
    state_dict has the names and shapes of a weights file.

    text_or_path, params, mode, class_weights, name, outputs, input_gradients   as in pnet.Model
    seed      of fresh weights, dropout, and losses that draw

    Without outputs: in training, network(batch) is the sum of the model's losses, which backward() differentiates by the
    parameters; norms use the statistics of the batch. In evaluation (eval()), it is the result of the last net, without
    gradients.
    With outputs: network(batch) is a dict of them by name, and a model needs no loss. In training they are differentiable, by the
    parameters and, with input_gradients, by the fields of the batch that require a gradient; backward() comes before the
    network's next batch, and once. In evaluation they have no gradients.
    A batch is a dict of tensors, as Session.bind takes it; rows of points have its order, those of a level the order of
    Model.outputs.

    On a GPU (network.cuda()) parameters and the tensors of a batch lie there, and results too. Products are those of autocast, or
    else as torch.set_float32_matmul_precision says; parameters, results and gradients are float32. A batch waits for the GPU,
    because counts of its geometry come to the host, and so do the model's own losses; outputs and backward do not wait. No CUDA
    graph can record a network, which records its own.
    """

    def __init__(self, text_or_path, params: Mapping[str, object] = {}, mode: str | None = None, class_weights=None,
                 name: str = "model.pnet", seed: int = 0, outputs: Sequence[str] = (), input_gradients: bool = False):
        super().__init__()
        self._made_of = {"text_or_path": text_or_path, "params": dict(params), "mode": mode, "name": name}
        self._class_weights, self._seed = class_weights, library.count("seed", seed, 64)
        self._outputs, self._by_inputs = tuple(outputs), library.flag("input_gradients", input_gradients)
        self._turn = 0  # how many batches have passed forward
        self._losses = None
        self._forget()
        session = self._session("train", torch.device("cpu"), "fp32")
        self._shapes = {w.name: w.shape for w in session.model.weights}
        self._names = list(self._shapes)
        self._trained = [w.name for w in session.model.weights if w.trained]
        for weight in session.model.weights:
            value = session.read("weight", weight.name, like=weight.shape)
            owner, last = self._place(weight.name)
            if weight.trained:
                owner.register_parameter(last, nn.Parameter(value))
            else:
                owner.register_buffer(last, value)

    def _place(self, name: str) -> tuple[nn.Module, str]:
        """The module that a weight belongs to, made where it is not there, and the weight's name in it."""
        *path, last = name.split(".")
        owner = self
        for part in path:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner._modules[part]
        return owner, last

    def _tensor(self, name: str) -> Tensor:
        owner, last = self._place(name)
        return getattr(owner, last)

    def _forget(self) -> None:
        self._models: dict[str, Model] = {}
        self._sessions: dict[tuple, _Running] = {}
        self._passed = None  # the session of the last pass

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_models": {}, "_sessions": {}, "_passed": None}  # a copy makes its own when it runs

    def _model(self, purpose: str) -> Model:
        if purpose not in self._models:
            more = {} if purpose == "infer" else {
                "class_weights": self._class_weights, "outputs": self._outputs, "input_gradients": self._by_inputs}
            self._models[purpose] = Model(purpose=purpose, **self._made_of, **more)
        return self._models[purpose]

    def _session(self, purpose: str, device: torch.device, precision: str) -> _Running:
        rule = purpose, device, precision
        if rule not in self._sessions:
            self._sessions = {known: made for known, made in self._sessions.items() if known[1] == device}  # it has moved
            made = _Running(self._model(purpose), device, precision, self._seed)
            if purpose == "train":
                made.call("init")  # all of them are replaced before anything is computed
            self._sessions[rule] = made
        return self._sessions[rule]

    def _where(self) -> tuple[torch.device, str]:
        """The device of the parameters, and the precision of products there."""
        device = self._tensor(self._names[0]).device
        for name in self._names:
            given = self._tensor(name)
            if given.device != device or given.dtype != torch.float32:
                raise library.refuse(f"{name} is {given.dtype} on {given.device}: a Network is float32, and on one device")
        _device.check(device)
        if device.type == "cpu":
            return device, "fp32"
        if torch.cuda.is_current_stream_capturing():
            raise library.refuse("a CUDA graph cannot record a Network, which records its own")
        if torch.is_autocast_enabled("cuda"):
            return device, {torch.bfloat16: "bf16", torch.float16: "fp16"}[torch.get_autocast_dtype("cuda")]
        return device, "fp32" if torch.get_float32_matmul_precision() == "highest" else "tf32"

    def _filled(self) -> _Running:
        """The session of training with the weights that the parameters have now."""
        session = self._session("train", *self._where())
        for name in self._names:
            session.set_weight(name, self._tensor(name).contiguous())
        return session

    @staticmethod
    def _wanted(batch: Mapping[str, Tensor]) -> list[str]:
        """The fields that require a gradient."""
        return [name for name, value in batch.items() if isinstance(value, Tensor) and value.requires_grad]

    def _bind(self, session: _Running, batch: Mapping[str, Tensor]) -> None:
        for name in self._wanted(batch):
            if not self._by_inputs:
                raise library.refuse(f"{name} requires a gradient: that takes a Network with outputs and input_gradients")
        session.bind(batch)

    def _pass(self, batch: Mapping[str, Tensor]) -> int:
        """Runs forward as training does it; returns the number of the pass."""
        session = self._filled()
        self._bind(session, batch)
        session.call("forward_training")
        self._keep_statistics(session)
        self._passed = session
        self._turn += 1
        return self._turn

    def _read(self) -> tuple[Tensor, ...]:
        session = self._passed
        return tuple(session.read("output", name, like=session.call("output_shape", name)) for name in self._outputs)

    def _back(self, turn: int, gradients: Sequence[Tensor | None], fields: Mapping[str, torch.Size]) -> list[Tensor]:
        """The gradients of all parameters that are trained, then of fields."""
        if turn != self._turn:
            raise library.refuse("the network has computed another batch since: backward comes before the next one")
        session = self._passed
        session.backward({name: g for name, g in zip(self._outputs, gradients) if g is not None})
        of_fields = [session.read("input_gradient", name, like=(shape[0], shape[1:].numel())).reshape(shape)
                     for name, shape in fields.items()]
        return self._of_parameters(session) + of_fields

    def _of_parameters(self, session: _Running) -> list[Tensor]:
        return [session.read("gradient", name, like=self._shapes[name]) for name in self._trained]

    def _keep_statistics(self, session: _Running) -> None:
        for name in self._names:
            if name not in self._trained:  # training has updated running statistics
                self._tensor(name).copy_(session.read("weight", name, like=self._shapes[name]))

    def _gradients(self, batch) -> tuple[Tensor, list[Tensor]]:
        """The sum of the losses, and its gradients by the parameters that are trained."""
        session = self._filled()
        self._bind(session, batch)
        session.call("gradients")
        self._turn += 1
        self._keep_statistics(session)
        self._losses = {o.name: session.call("objective", o.name) for o in session.model.objectives if not o.metric}
        loss = torch.tensor(sum(self._losses.values()), dtype=torch.float32, device=session.device)
        return loss, self._of_parameters(session)

    @property
    def losses(self) -> dict[str, float]:
        """Each loss of the last batch of training, by name."""
        if self._losses is None:
            raise library.refuse("there are no losses before the first batch")
        return dict(self._losses)

    @torch.compiler.disable
    def objectives(self, batch: Mapping[str, Tensor]) -> dict[str, float]:
        """Losses and metrics of a batch, as in evaluation."""
        session = self._evaluated(batch)
        return {o.name: session.call("objective", o.name) for o in session.model.objectives}

    def _evaluated(self, batch: Mapping[str, Tensor]) -> _Running:
        session = self._filled()
        self._bind(session, batch)
        session.call("forward")
        self._passed = session
        self._turn += 1
        return session

    @torch.compiler.disable
    def forward(self, batch: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
        _sums.check_operands()
        library.items("batch", batch)
        if self._outputs:
            if self.training:
                fields = self._wanted(batch)
                found = _Outputs.apply(self, batch, fields, *(self._tensor(name) for name in self._trained),
                                       *(batch[name] for name in fields))
            else:
                self._evaluated(batch)
                found = self._read()
            return dict(zip(self._outputs, found))
        if self.training:
            return _Losses.apply(self, batch, *(self._tensor(name) for name in self._trained))
        filled = self._filled()
        session = self._session("infer", *self._where())
        session.copy_weights(filled)
        self._bind(session, batch)
        session.call("forward")
        return session.read("result", like=session.call("result_shape"))

"""A .pnet model as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pnet import _library as library
from pnet.model import Model
from pnet.session import Session


class _Losses(torch.autograd.Function):
    """The sum of the losses; its gradients are there when the sum is, because a session computes both at once."""

    @staticmethod
    def forward(ctx, network: Network, batch, *parameters: Tensor) -> Tensor:
        losses, gradients = network._gradients(batch)
        ctx.save_for_backward(*gradients)
        return torch.tensor(losses, dtype=torch.float32)

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: Tensor):
        return None, None, *(gradient * known for known in ctx.saved_tensors)


class _Outputs(torch.autograd.Function):
    """Outputs of a model, for losses of one's own. A session keeps what backward needs of its last pass alone."""

    @staticmethod
    def forward(ctx, network: Network, batch, fields: list[str], *differentiated: Tensor) -> tuple[Tensor, ...]:
        ctx.set_materialize_grads(False)
        ctx.network, ctx.fields, ctx.turn = network, fields, network._pass(batch)
        return network._read()

    @staticmethod
    @once_differentiable
    def backward(ctx, *gradients: Tensor | None):
        return None, None, None, *ctx.network._back(ctx.turn, gradients, ctx.fields)


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
    """

    def __init__(self, text_or_path, params: Mapping[str, object] = {}, mode: str | None = None, class_weights=None,
                 name: str = "model.pnet", seed: int = 0, outputs: Sequence[str] = (), input_gradients: bool = False):
        super().__init__()
        self._made_of = {"text_or_path": text_or_path, "params": dict(params), "mode": mode, "name": name}
        self._class_weights, self._seed = class_weights, seed
        self._outputs, self._by_inputs = tuple(outputs), bool(input_gradients)
        self._turn = 0  # how many batches have passed forward
        self._losses = None
        self._forget()
        session = self._trains()
        session.init()
        self._names = [w.name for w in session.model.weights]
        self._trained = [w.name for w in session.model.weights if w.trained]
        for weight in session.model.weights:
            value = torch.from_numpy(session.weight(weight.name))
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
        self._sessions: dict[str, Session] = {}

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_sessions": {}}  # a copy makes its own when it runs

    def _session(self, purpose: str) -> Session:
        if purpose not in self._sessions:
            more = {} if purpose == "infer" else {
                "class_weights": self._class_weights, "outputs": self._outputs, "input_gradients": self._by_inputs}
            model = Model(purpose=purpose, **self._made_of, **more)
            self._sessions[purpose] = model.session(seed=self._seed)
            if purpose == "train":
                self._sessions[purpose].init()  # all of them are replaced before anything is computed
        return self._sessions[purpose]

    def _trains(self) -> Session:
        return self._session("train")

    def _filled(self) -> Session:
        """The session of training with the weights that the parameters have now."""
        session = self._trains()
        for name in self._names:
            given = self._tensor(name)
            if given.device.type != "cpu" or given.dtype != torch.float32:
                raise library.refuse(f"{name} is {given.dtype} on {given.device}: a Network is float32 on the CPU")
            session.set_weight(name, given.detach().numpy())
        return session

    @staticmethod
    def _wanted(batch: Mapping[str, Tensor]) -> list[str]:
        """The fields that require a gradient."""
        return [name for name, value in batch.items() if isinstance(value, Tensor) and value.requires_grad]

    def _arrays(self, batch: Mapping[str, Tensor]) -> dict:
        for name in self._wanted(batch):
            if not self._by_inputs:
                raise library.refuse(f"{name} requires a gradient: that takes a Network with outputs and input_gradients")
        return {name: value.detach().numpy() if isinstance(value, Tensor) else value for name, value in batch.items()}

    def _pass(self, batch: Mapping[str, Tensor]) -> int:
        """Runs forward as training does it; returns the number of the pass."""
        session = self._filled()
        session.bind(self._arrays(batch))
        session.forward_training()
        self._keep_statistics(session)
        self._turn += 1
        return self._turn

    def _read(self) -> tuple[Tensor, ...]:
        return tuple(torch.from_numpy(self._trains().output(name)) for name in self._outputs)

    def _back(self, turn: int, gradients: Sequence[Tensor | None], fields: Sequence[str]) -> list[Tensor]:
        """The gradients of all parameters that are trained, then of fields."""
        if turn != self._turn:
            raise library.refuse("the network has computed another batch since: backward comes before the next one")
        session = self._trains()
        session.backward({name: g.numpy() for name, g in zip(self._outputs, gradients) if g is not None})
        return [torch.from_numpy(session.gradient(name)) for name in self._trained] + [
            torch.from_numpy(session.input_gradient(name)) for name in fields]

    def _keep_statistics(self, session: Session) -> None:
        for name in self._names:
            if name not in self._trained:  # training has updated running statistics
                self._tensor(name).copy_(torch.from_numpy(session.weight(name)))

    def _gradients(self, batch) -> tuple[float, list[Tensor]]:
        session = self._filled()
        session.bind(self._arrays(batch))
        session.gradients()
        self._turn += 1
        self._keep_statistics(session)
        self._losses = {o.name: session.objective(o.name) for o in session.model.objectives if not o.metric}
        return sum(self._losses.values()), [torch.from_numpy(session.gradient(name)) for name in self._trained]

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
        return {o.name: session.objective(o.name) for o in session.model.objectives}

    def _evaluated(self, batch: Mapping[str, Tensor]) -> Session:
        session = self._filled()
        session.bind(self._arrays(batch))
        session.forward()
        self._turn += 1
        return session

    @torch.compiler.disable
    def forward(self, batch: Mapping[str, Tensor]) -> Tensor | dict[str, Tensor]:
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
        session = self._session("infer")
        session.copy_weights(self._filled())
        session.bind(self._arrays(batch))
        session.forward()
        return torch.from_numpy(session.result())

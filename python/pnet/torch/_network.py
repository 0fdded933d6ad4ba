"""A .pnet model as a module of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping

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


class Network(nn.Module):
    """A model with losses, whose weights are parameters by the names that pnetc gives them, and running statistics of norms
    buffers: a state_dict has the names and shapes of a weights file.

    text_or_path, params, mode, class_weights, name   as in pnet.Model
    seed      of fresh weights, dropout, and losses that draw

    In training, network(batch) is the sum of the losses, which backward() differentiates by the parameters; norms use the
    statistics of the batch. In evaluation (eval()), it is the result of the last net, without gradients. A batch is a dict of
    tensors, as Session.bind takes it; rows of results have its order.
    """

    def __init__(self, text_or_path, params: Mapping[str, object] = {}, mode: str | None = None, class_weights=None,
                 name: str = "model.pnet", seed: int = 0):
        super().__init__()
        self._made_of = {"text_or_path": text_or_path, "params": dict(params), "mode": mode, "name": name}
        self._class_weights, self._seed = class_weights, seed
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
            weights = {} if purpose == "infer" else {"class_weights": self._class_weights}
            model = Model(purpose=purpose, **self._made_of, **weights)
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
    def _arrays(batch: Mapping[str, Tensor]) -> dict:
        for name, value in batch.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise library.refuse(f"{name} requires a gradient: a Network has gradients of its parameters alone")
        return {name: value.numpy() if isinstance(value, Tensor) else value for name, value in batch.items()}

    def _gradients(self, batch) -> tuple[float, list[Tensor]]:
        session = self._filled()
        session.bind(self._arrays(batch))
        session.gradients()
        for name in self._names:
            if name not in self._trained:  # training has updated running statistics
                self._tensor(name).copy_(torch.from_numpy(session.weight(name)))
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
        session = self._filled()
        session.bind(self._arrays(batch))
        session.forward()
        return {o.name: session.objective(o.name) for o in session.model.objectives}

    @torch.compiler.disable
    def forward(self, batch: Mapping[str, Tensor]) -> Tensor:
        if self.training:
            return _Losses.apply(self, batch, *(self._tensor(name) for name in self._trained))
        session = self._session("infer")
        session.copy_weights(self._filled())
        session.bind(self._arrays(batch))
        session.forward()
        return torch.from_numpy(session.result())

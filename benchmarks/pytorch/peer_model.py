"""The models of examples/fashion_mnist in PyTorch, and the ways to run them that are tried for speed."""
import torch

LEARNING_RATE, MOMENTUM = 0.05, 0.9
WARM_UP_STEPS = 5


def network(name):
    nn = torch.nn
    if name == "mlp":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                             nn.Linear(512, 10))
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))


def laid_out(tensor_or_module, mode):
    """In the memory layout of that mode (peer_environment.MODES)."""
    return tensor_or_module.to(memory_format=torch.channels_last) if "channels-last" in mode else tensor_or_module


def compiled(module, mode):
    """By inductor, where that is the mode: one program for each batch size, in code for the instructions that ATen may use."""
    if "compile" not in mode:
        return module
    import torch._inductor.config as inductor
    if torch.backends.cpu.get_cpu_capability() == "AVX2":
        inductor.cpp.march = "x86-64-v3"  # it takes -march=native else
    return torch.compile(module, dynamic=False)


def momentum_sgd(module):
    return torch.optim.SGD(module.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM, fused=True)

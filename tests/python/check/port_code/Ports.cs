using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace PortCode;

/// <summary>A port without a fault.</summary>
public class Mlp : nn.Module<Tensor, Tensor>
{
    protected readonly Linear fc1;
    protected readonly Linear fc2;

    public Mlp(long hidden, bool bias = true)
        : base(nameof(Mlp))
    {
        fc1 = nn.Linear(4, hidden, hasBias: bias);
        fc2 = nn.Linear(hidden, 4);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input) => fc2.call(Activate(fc1.call(input)));

    protected virtual Tensor Activate(Tensor input) => input.relu();
}

/// <summary>A port with another activation.</summary>
public sealed class WrongActivation(long hidden) : Mlp(hidden)
{
    protected override Tensor Activate(Tensor input) => input.tanh();
}

/// <summary>A port whose activation is an ulp off where a formula is rearranged.</summary>
public sealed class OtherFormula(long hidden) : Mlp(hidden)
{
    protected override Tensor Activate(Tensor input) => (input.relu() / 3) * 3;
}

/// <summary>A port whose activation is larger by a thousandth.</summary>
public sealed class SlightlyOff(long hidden) : Mlp(hidden)
{
    protected override Tensor Activate(Tensor input) => input.relu() * 1.001;
}

/// <summary>A port without the first bias.</summary>
public sealed class MissingBias(long hidden) : Mlp(hidden, bias: false);

/// <summary>A port that multiplies by the transposed weight.</summary>
public sealed class Transposed(long hidden) : Mlp(hidden)
{
    public override Tensor forward(Tensor input) => fc2.call(Activate(nn.functional.linear(input, fc1.weight!.t(), fc1.bias)));
}

/// <summary>A port that fails in its forward.</summary>
public sealed class Throws(long hidden) : Mlp(hidden)
{
    protected override Tensor Activate(Tensor input) => throw new InvalidOperationException("Throws: no activation");
}

/// <summary>A port that cannot be made.</summary>
public sealed class Unmade(long hidden) : Mlp(hidden > 0 ? throw new ArgumentException("Unmade: no layers") : hidden);

/// <summary>A port with other names.</summary>
public sealed class Renamed : nn.Module<Tensor, Tensor>
{
    private readonly Linear first;
    private readonly Linear second;

    public Renamed(long hidden)
        : base(nameof(Renamed))
    {
        first = nn.Linear(4, hidden);
        second = nn.Linear(hidden, 4);
        RegisterComponents();
    }

    public override Tensor forward(Tensor input) => second.call(first.call(input).relu());
}

/// <summary>Losses of the user's own.</summary>
public static class Losses
{
    /// <summary>Half of the cross-entropy.</summary>
    public static Tensor Half(Tensor outputs, Tensor targets) => nn.functional.cross_entropy(outputs, targets) / 2;
}

using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace UserCode;

/// <summary>A linear layer from 4 to 2 values.</summary>
public class Tiny : nn.Module<Tensor, Tensor>
{
    private readonly Linear layer = nn.Linear(4, 2);

    public Tiny()
        : base(nameof(Tiny))
        => RegisterComponents();

    public override Tensor forward(Tensor input) => layer.forward(input);
}

/// <summary>A model that cannot be made.</summary>
public sealed class Bomb : Tiny
{
    public Bomb() => throw new ArgumentException("Bomb: expected calm, got a bomb");
}

/// <summary>A model that refuses shards that begin with a negative value.</summary>
public sealed class Fragile : Tiny
{
    public override Tensor forward(Tensor input)
        => input[0, 0].item<float>() < 0 ? throw new ArithmeticException("Fragile: too negative") : base.forward(input);
}

/// <summary>A model that writes to the console.</summary>
public sealed class Chatty : Tiny
{
    public override Tensor forward(Tensor input)
    {
        Console.WriteLine("Chatty: good day, 世界");
        Console.Error.WriteLine("Chatty: to the error stream");
        return base.forward(input);
    }
}

/// <summary>A model that takes its time.</summary>
/// <param name="seconds">How long.</param>
public sealed class Sleeper(double seconds) : Tiny
{
    public override Tensor forward(Tensor input)
    {
        Thread.Sleep(TimeSpan.FromSeconds(seconds));
        return base.forward(input);
    }
}

/// <summary>A model that ends the process.</summary>
/// <param name="code">The exit code.</param>
public sealed class Quitter(int code) : Tiny
{
    public override Tensor forward(Tensor input)
    {
        Environment.Exit(code);
        return input;
    }
}

/// <summary>A model of one long parameter.</summary>
public sealed class Large : nn.Module<Tensor, Tensor>
{
    private readonly Parameter weight;

    public Large(long count)
        : base(nameof(Large))
    {
        weight = nn.Parameter(zeros(count));
        RegisterComponents();
    }

    public override Tensor forward(Tensor input) => input * weight.sum();
}

/// <summary>A model with buffers of every type, among them a scalar and an empty one.</summary>
public sealed class Mixed : nn.Module<Tensor, Tensor>
{
    private static readonly ScalarType[] Types =
    [
        ScalarType.Bool, ScalarType.Byte, ScalarType.Int8, ScalarType.Int16, ScalarType.Int32, ScalarType.Int64,
        ScalarType.Float16, ScalarType.BFloat16, ScalarType.Float32, ScalarType.Float64,
    ];

    private readonly Linear layer = nn.Linear(4, 2);

    public Mixed()
        : base(nameof(Mixed))
    {
        RegisterComponents();
        foreach (var type in Types)
        {
            register_buffer($"{type}", zeros([2, 3], dtype: type));
        }

        register_buffer("scalar", zeros([], dtype: ScalarType.Int64));
        register_buffer("empty", zeros([0, 3]));
    }

    public override Tensor forward(Tensor input) => layer.forward(input);
}

/// <summary>A perceptron that runs its layers by <c>forward</c>, one of them twice.</summary>
public sealed class Unhooked : nn.Module<Tensor, Tensor>
{
    private readonly Linear fc1 = nn.Linear(4, 4);
    private readonly ReLU act = nn.ReLU(inplace: true);
    private readonly ModuleList<nn.Module<Tensor, Tensor>> layers = nn.ModuleList<nn.Module<Tensor, Tensor>>(nn.Linear(4, 4), nn.Tanh());
    private readonly Linear fc2 = nn.Linear(4, 2);

    public Unhooked()
        : base(nameof(Unhooked))
        => RegisterComponents();

    public override Tensor forward(Tensor input)
    {
        input = act.forward(fc1.forward(act.forward(fc1.forward(input))));
        foreach (var layer in layers)
        {
            input = layer.forward(input);
        }

        return fc2.forward(input);
    }
}

/// <summary>A perceptron that registers its last layer alone.</summary>
public sealed class Unregistered : nn.Module<Tensor, Tensor>
{
    private readonly Linear last = nn.Linear(4, 2);
    private readonly Linear[] layers = [nn.Linear(4, 4), nn.Linear(4, 4)];

    public Unregistered()
        : base(nameof(Unregistered))
        => RegisterComponents();

    public override Tensor forward(Tensor input) => last.forward(layers[1].forward(layers[0].forward(input)).tanh());
}

using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A linear layer, and a property of any type.</summary>
internal sealed class Holder : nn.Module<Tensor, Tensor>
{
    /// <summary>Hold an object.</summary>
    public Holder(object? held = null)
        : base(nameof(Holder))
    {
        Held = held;
        RegisterComponents();
    }

    /// <summary>Raised by <see cref="forward"/>.</summary>
    public event Action<nn.Module>? Called;

    /// <summary>The layer.</summary>
    public Linear Layer { get; } = nn.Linear(2, 2);

    /// <summary>What it holds.</summary>
    public object? Held { get; set; }

    /// <inheritdoc/>
    public override Tensor forward(Tensor input)
    {
        Called?.Invoke(this);
        return Layer.call(input);
    }
}

/// <summary>Writes down which modules called it, and can take its hook back.</summary>
internal sealed class Recorder
{
    /// <summary>What <c>register_forward_hook</c> gave.</summary>
    public object? Remover { get; set; }

    /// <summary>How often it was called.</summary>
    public int Calls { get; private set; }

    /// <summary>Write down a call.</summary>
    public Tensor Note(nn.Module<Tensor, Tensor> module, Tensor input, Tensor output)
    {
        Calls++;
        return output;
    }
}

/// <summary>One of two, told apart by reference.</summary>
internal sealed class Mode
{
    /// <summary>The one.</summary>
    public static readonly Mode Fast = new();

    private Mode()
    {
    }
}

using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Tests.Spec;

/// <summary>A module of given parameters and buffers, which adds its argument to its first parameter.</summary>
internal sealed class Net : nn.Module<Tensor, Tensor>
{
    /// <summary>Register what is given, in order.</summary>
    public Net(IEnumerable<(string Name, Tensor Value)> parameters, IEnumerable<(string Name, Tensor Value)>? buffers = null)
        : base(nameof(Net))
    {
        foreach (var (name, value) in parameters)
        {
            register_parameter(name, new Parameter(value));
        }

        foreach (var (name, value) in buffers ?? [])
        {
            register_buffer(name, value);
        }
    }

    /// <summary>The first parameter.</summary>
    public Parameter First => parameters().First();

    /// <inheritdoc/>
    public override Tensor forward(Tensor input) => First + input;
}

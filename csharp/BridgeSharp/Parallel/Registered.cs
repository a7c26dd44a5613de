using System.Reflection;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The tensors of a module by name, buffers that are not persistent included: TorchSharp does not list those.</summary>
internal static class Registered
{
    private static readonly FieldInfo OwnBuffers = typeof(nn.Module).GetField("_internal_buffers", FieldSnapshot.Own)!;

    /// <summary>List parameters, then buffers.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Tensors(nn.Module module)
        => module.named_parameters().Select(named => (named.name, (Tensor)named.parameter)).Concat(Buffers(module));

    /// <summary>List buffers.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Buffers(nn.Module module)
        => Modules(module).SelectMany(named => Own(named.Module).Select(buffer => (named.Prefix + buffer.Name, buffer.Tensor)));

    private static IEnumerable<(string Prefix, nn.Module Module)> Modules(nn.Module module)
        => module.named_modules().Select(named => ($"{named.name}.", named.module)).Prepend(("", module));

    private static IEnumerable<(string Name, Tensor Tensor)> Own(nn.Module module)
        => ((IEnumerable<(string Name, (Tensor Tensor, bool))>)OwnBuffers.GetValue(module)!).Select(buffer => (buffer.Name, buffer.Item2.Tensor));
}

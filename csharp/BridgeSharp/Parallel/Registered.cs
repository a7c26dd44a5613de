using System.Reflection;
using TorchSharp;
using TorchSharp.Modules;
using TorchSharp.Utils;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>The tensors of a module by name, buffers that are not persistent included: TorchSharp does not list those.</summary>
internal static class Registered
{
    private static readonly FieldInfo OwnBuffers = typeof(nn.Module).GetField("_internal_buffers", FieldSnapshot.Own)!;

    /// <summary>List parameters, then buffers.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Tensors(nn.Module module)
        => Named(module).Select(named => (named.Name, (Tensor)named.Parameter)).Concat(Buffers(module));

    /// <summary>List parameters with their names, each once: TorchSharp lists a tied one again that came by another reference.</summary>
    public static IEnumerable<(string Name, Parameter Parameter)> Named(nn.Module module)
        => module.named_parameters().DistinctBy(named => TensorCopier.Identity(named.parameter));

    /// <summary>List parameters, each once.</summary>
    public static IEnumerable<Parameter> Parameters(nn.Module module) => Named(module).Select(named => named.Parameter);

    /// <summary>List buffers.</summary>
    public static IEnumerable<(string Name, Tensor Tensor)> Buffers(nn.Module module)
        => NamedModules(module).SelectMany(named => Own(named.Module).Select(buffer => (named.Prefix + buffer.Name, buffer.Tensor)));

    /// <summary>List a module and those in it.</summary>
    public static IEnumerable<nn.Module> Modules(nn.Module module) => NamedModules(module).Select(named => named.Module);

    /// <summary>Take the place where a module registers its own buffers.</summary>
    public static OrderedDict<string, (Tensor Tensor, bool Persistent)> Place(nn.Module module)
        => (OrderedDict<string, (Tensor, bool)>)OwnBuffers.GetValue(module)!;

    private static IEnumerable<(string Prefix, nn.Module Module)> NamedModules(nn.Module module)
        => module.named_modules().Select(named => ($"{named.name}.", named.module)).Prepend(("", module));

    private static IEnumerable<(string Name, Tensor Tensor)> Own(nn.Module module)
        => ((IEnumerable<(string Name, (Tensor Tensor, bool))>)Place(module)).Select(buffer => (buffer.Name, buffer.Item2.Tensor));
}

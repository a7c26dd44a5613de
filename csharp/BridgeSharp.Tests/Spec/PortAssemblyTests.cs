using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.PortableExecutable;
using System.Runtime.Loader;
using System.Text.Json.Nodes;
using BridgeSharp.Trace;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using TraceRecorder = BridgeSharp.Trace.Recorder;

namespace BridgeSharp.Tests.Spec;

/// <summary>Ports are observed as they are: calls of <c>forward</c>, and what they never registered.</summary>
[Collection(nameof(Serial))]
public sealed class PortAssemblyTests
{
    private static readonly Lazy<Assembly> Rewritten = new(
        () => PortAssembly.load(typeof(PortAssemblyTests).Assembly.Location, new AssemblyLoadContext("port")));

    /// <summary>The layers of each kind of port, in the order of their calls; the model is the last.</summary>
    public static TheoryData<string, string> Ports => new()
    {
        { nameof(PortOfChildren), "fc1 act drop fc2 " },
        { nameof(PortOfList), "layers.0 layers.1 layers.2 " },
        { nameof(PortOfThree), "first first first " },
        { nameof(PortOfFields), "blocks.0.fc blocks.1.fc " },
        { nameof(PortOfHelpers), "a b c d e f.fc f g.fc g.act g " },
        { nameof(PortOfPairs), "split.fc split split both " },
    };

    /// <summary>Every call of a layer is seen, with its place in the code; the bits are those of code that was not rewritten. Spec: R33.1.</summary>
    [Theory]
    [MemberData(nameof(Ports))]
    public void Calls_of_forward_are_observed(string port, string layers)
    {
        ArgumentNullException.ThrowIfNull(layers);
        using var folder = new TraceFolder();
        var plain = Train(typeof(PortAssemblyTests).Assembly, port, null);
        Assert.Equal(plain, Train(Rewritten.Value, port, null));
        Assert.Equal(plain, Train(Rewritten.Value, port, folder.Path));
        var outputs = Of(folder, "forward", "activation").ToList();
        Assert.Equal(layers.Split(' '), outputs.Select(record => (string)record["name"]!));
        Assert.DoesNotContain(folder.Read(), record => record.ContainsKey("unobserved") && (string)record["name"]! != "layers");
        var inner = outputs.Where(record => (string)record["name"]! is not "" and not "g.fc" and not "g.act");
        Assert.All(inner, record => Assert.Matches(@"/Ports\.cs:\d+$", (string?)record["at"]));
    }

    /// <summary>The gradients of outputs are taken down, the last first, and the bits stay the same. Spec: R33.4.</summary>
    [Theory]
    [MemberData(nameof(Ports))]
    public void Gradients_of_outputs_are_observed(string port, string layers)
    {
        ArgumentNullException.ThrowIfNull(layers);
        using var folder = new TraceFolder();
        var plain = Train(typeof(PortAssemblyTests).Assembly, port, null);
        Assert.Equal(plain, Train(Rewritten.Value, port, folder.Path, activation_gradients: true));
        var names = Of(folder, "backward", "gradient").Where(record => record["part"]!.GetValue<string>().Length > 0).Select(record => (string)record["name"]!);
        Assert.Equal(layers.Split(' ').Reverse(), names);
    }

    /// <summary>The gradient of an output is the one that the backward brings there, also where it was changed in place. Spec: R33.4.</summary>
    [Fact]
    public void Gradients_are_those_before_a_change_in_place()
    {
        using var scope = NewDisposeScope();
        using var folder = new TraceFolder();
        using var model = nn.Sequential(("act", nn.Identity()), ("relu", nn.ReLU(inplace: true)));
        var inputs = tensor(new[] { -1f, 2f }).requires_grad_();
        using (var trace = new TraceRecorder(folder.Path, model, activation_gradients: true))
        {
            trace.inputs(inputs);
            var loss = (model.call(inputs * 1) * 3).sum();
            trace.loss(loss);
            loss.backward();
            trace.gradients();
            trace.step();
        }

        var largest = Of(folder, "backward", "gradient").ToDictionary(record => (string)record["name"]!, record => ((double)record["min"]!, (double)record["max"]!));
        Assert.Equal((3.0, 3.0), largest["relu"]);
        Assert.Equal((0.0, 3.0), largest["act"]);
    }

    /// <summary>Parameters that are plain tensors, or of layers that are not registered, are recorded and reported; others are not. Spec: R33.3.</summary>
    [Fact]
    public void What_is_not_registered_is_found()
    {
        using var folder = new TraceFolder();
        Train(Rewritten.Value, nameof(PortOfFields), folder.Path);
        string[] parameters = ["weight", "blocks.0.fc.weight", "blocks.0.fc.bias", "blocks.1.fc.weight", "blocks.1.fc.bias"];
        Assert.Equal(parameters, Of(folder, "step", "parameter").Select(record => (string)record["name"]!));
        Assert.Equal(parameters, Of(folder, "backward", "gradient").Select(record => (string)record["name"]!));
        var reported = folder.Read().Where(record => (string)record["part"]! == "registered").ToDictionary(record => (string)record["name"]!, record => (string)record["value"]!);
        Assert.Equal(["blocks.0.fc", "blocks.1.fc", "weight", .. parameters.Skip(1)], reported.Keys);
        Assert.All(reported.Values, value => Assert.Equal("not registered: the optimizer and state_dict do not see it", value));
    }

    /// <summary>Code that cannot be rewritten runs as it is, and the trace says why its calls were not seen; no file changes. Spec: R33.2.</summary>
    [Fact]
    public void What_cannot_be_rewritten_is_said()
    {
        using var folder = new TraceFolder();
        using var copy = new TraceFolder();
        var path = Path.Combine(copy.Path, "damaged.dll");
        var image = File.ReadAllBytes(typeof(PortAssemblyTests).Assembly.Location);
        image[BodyOffset(image, nameof(PortOfThree))] = 0; // Neither a small body nor a large one: .NET would find out when the method runs.
        File.WriteAllBytes(path, image);
        var damaged = PortAssembly.load(path, new AssemblyLoadContext("damaged"));
        Assert.Same(damaged, PortAssembly.load(path, AssemblyLoadContext.GetLoadContext(damaged)!));
        Train(damaged, nameof(PortOfChildren), folder.Path);
        var unseen = folder.Read().Where(record => (int)record["step"]! == 0 && record.ContainsKey("unobserved")).ToDictionary(record => (string)record["name"]!, record => (string)record["unobserved"]!);
        Assert.Equal(["fc1", "act", "drop", "fc2"], unseen.Keys);
        Assert.All(unseen.Values, reason => Assert.StartsWith("no call of the layer was seen in this step: damaged.dll could not be rewritten: ", reason, StringComparison.Ordinal));
        Assert.Equal(image, File.ReadAllBytes(path));
    }

    /// <summary>What lies beside an assembly is rewritten when it is needed, and keeps its name and key. Spec: R33.1.</summary>
    [Fact]
    public void What_the_port_needs_is_observed()
    {
        using var folder = new TraceFolder();
        using var copy = new TraceFolder();
        var key = typeof(object).Assembly.GetName().GetPublicKey();
        var path = Path.Combine(copy.Path, "Port.dll");
        File.Copy(typeof(PortAssemblyTests).Assembly.Location, path);
        using (var needed = Mono.Cecil.AssemblyDefinition.ReadAssembly(path))
        {
            (needed.Name.Name, needed.Name.PublicKey) = ("Needed", key);
            needed.Write(Path.Combine(copy.Path, "Needed.dll"));
        }

        var context = new AssemblyLoadContext("needed");
        PortAssembly.load(path, context);
        var assembly = context.LoadFromAssemblyName(new AssemblyName("Needed"));
        Assert.Equal(key, assembly.GetName().GetPublicKey());
        Train(assembly, nameof(PortOfThree), folder.Path);
        Assert.Equal(["first", "first", "first", ""], Of(folder, "forward", "activation").Select(record => (string)record["name"]!));
    }

    /// <summary>An exception in rewritten code has the lines of the source. Spec: R33.1.</summary>
    [Fact]
    public void Exceptions_have_their_lines()
    {
        using var scope = NewDisposeScope();
        var model = (nn.Module<Tensor, Tensor>)Activator.CreateInstance(Rewritten.Value.GetType(typeof(PortOfChildren).FullName!)!)!;
        var error = Assert.ThrowsAny<Exception>(() => model.forward(ones(2, 7)));
        Assert.Matches(@"Ports\.cs:line \d+", error.StackTrace);
    }

    private static IEnumerable<JsonObject> Of(TraceFolder folder, string phase, string kind)
        => folder.Read().Where(record => (int)record["step"]! == 0 && (string)record["phase"]! == phase && (string)record["kind"]! == kind && !record.ContainsKey("unobserved"));

    /// <summary>Find where the body of a port's <c>forward</c> begins.</summary>
    private static int BodyOffset(byte[] image, string port)
    {
        using var stream = new MemoryStream(image);
        using var reader = new PEReader(stream);
        var metadata = reader.GetMetadataReader();
        var type = metadata.TypeDefinitions.Select(metadata.GetTypeDefinition).Single(type => metadata.StringComparer.Equals(type.Name, port));
        var forward = type.GetMethods().Select(metadata.GetMethodDefinition).Single(method => metadata.StringComparer.Equals(method.Name, "forward"));
        var section = reader.PEHeaders.SectionHeaders[reader.PEHeaders.GetContainingSectionIndex(forward.RelativeVirtualAddress)];
        return forward.RelativeVirtualAddress - section.VirtualAddress + section.PointerToRawData;
    }

    /// <summary>Take two steps of a port, recorded if there is a path; return the digests of outputs, parameters, gradients and random state.</summary>
    private static List<string> Train(Assembly assembly, string port, string? path, bool activation_gradients = false)
    {
        using var scope = NewDisposeScope();
        random.manual_seed(11);
        using var model = (nn.Module<Tensor, Tensor>)Activator.CreateInstance(assembly.GetType($"BridgeSharp.Tests.Spec.{port}")!)!;
        var parameters = TrainingState.Parameters(model).Select(named => named.Parameter).ToList();
        using var trace = path is null ? null : new TraceRecorder(path, model, activation_gradients: activation_gradients);
        List<string> digests = [];
        for (var step = 0; step < 2; step++)
        {
            var inputs = randn(4, 3);
            trace?.inputs(inputs);
            var outputs = model.call(inputs);
            var loss = outputs.square().sum();
            trace?.loss(loss);
            loss.backward();
            trace?.gradients();
            trace?.step();
            digests.AddRange(parameters.Select(parameter => parameter.grad!).Append(outputs).Append(random.get_rng_state()).Select(one => Keeper.Observe(one, false, out _).digest));
            using var mode = no_grad();
            parameters.ForEach(parameter => parameter.sub_(parameter.grad! * 0.1f));
        }

        return [.. digests, .. parameters.Select(parameter => Keeper.Observe(parameter, false, out _).digest)];
    }
}

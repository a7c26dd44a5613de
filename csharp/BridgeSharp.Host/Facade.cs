using System.Runtime.InteropServices;
using System.Text.Json;
using System.Text.Json.Nodes;
using System.Text.Json.Serialization;
using BridgeSharp.Doctor;
using BridgeSharp.Host.Conformance;
using BridgeSharp.Models.Examples;
using BridgeSharp.Models.Recipes;
using BridgeSharp.Native;
using BridgeSharp.Parity;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>The one class that Python calls: strings and numbers go in and out, and no exception does.</summary>
/// <remarks>
/// A request is <c>{"method": …, "arguments": {…}}</c>, a reply <c>{"result": …}</c> or <c>{"error": {…}}</c>. Tensors
/// cross in a segment of memory that both sides see.
/// </remarks>
public static class Facade
{
    private static readonly JsonSerializerOptions Json = new()
    {
        NumberHandling = JsonNumberHandling.AllowNamedFloatingPointLiterals,
        UnmappedMemberHandling = JsonUnmappedMemberHandling.Disallow,
    };

    private static readonly Dictionary<long, Session> Sessions = [];
    private static readonly Dictionary<string, Func<JsonObject, Segment, object>> Methods = new()
    {
        ["hello"] = (_, _) => Hello(),
        ["family"] = (arguments, _) => Battery(arguments),
        ["family.run"] = (arguments, _) => RunBattery(arguments),
        ["doctor"] = (_, _) => Examination.examine(),
        ["trainer.create"] = (arguments, _) => Open(TrainerFactory.Create(arguments)),
        ["trainer.step"] = (arguments, segment) => Step(arguments, segment),
        ["trainer.trace"] = (arguments, _) => Trace(arguments),
        ["trainer.save"] = (arguments, _) => Save(arguments),
        ["trainer.load"] = (arguments, _) => Load(arguments),
        ["trainer.describe"] = (arguments, _) => Description.Of(Find(arguments).Trainer, arguments),
        ["trainer.forward"] = (arguments, segment) => Forward(arguments, segment),
        ["trainer.set"] = (arguments, _) => SetRate(arguments),
        ["loop.create"] = (arguments, _) => Open(new Session(new UserLoop(arguments))),
        ["loop.step"] = (arguments, segment) => StepLoop(arguments, segment),
        ["run.create"] = (arguments, _) => OpenRun(arguments),
        ["run.step"] = (arguments, _) => Find(arguments).Run.step(),
        ["run.evaluate"] = (arguments, _) => new { accuracy = Find(arguments).Run.evaluate((long?)arguments["count"]) },
        ["example.run"] = (arguments, _) => RunExample(arguments),
        ["conformance.run"] = RunCase,
        ["conformance.signature"] = (arguments, _) => Signatures.Of((string)arguments["name"]!),
        ["state.manifest"] = (arguments, _) => State.Manifest(Find(arguments)),
        ["state.write"] = (arguments, segment) => State.Write(Find(arguments), segment),
        ["state.read"] = (arguments, segment) => State.Read(Find(arguments), arguments, segment),
        ["digest"] = (arguments, _) => new { digest = Digest.digest(Find(arguments).State()) },
        ["close"] = (arguments, _) => Close(arguments),
    };

    private static long handles;

    /// <summary>Carry out one request.</summary>
    /// <param name="request">JSON.</param>
    /// <param name="address">Where the shared segment is mapped.</param>
    /// <param name="length">Its bytes.</param>
    /// <returns>JSON.</returns>
    public static string Call(string request, long address, long length)
    {
        try
        {
            NativeLibraries.Load();
            var message = JsonNode.Parse(request)!;
            var name = (string)message["method"]!;
            if (!Methods.TryGetValue(name, out var method))
            {
                throw new ArgumentException($"facade: expected one of {string.Join(", ", Methods.Keys)}, got {name}");
            }

            var result = method(message["arguments"]!.AsObject(), new Segment(address, length));
            return JsonSerializer.Serialize(new { result }, Json);
        }
#pragma warning disable CA1031 // No exception may cross into Python.
        catch (Exception error)
#pragma warning restore CA1031
        {
            return JsonSerializer.Serialize(new { error = ErrorReply.Of(error) }, Json);
        }
    }

    private static object Hello() => new
    {
        dotnet = RuntimeInformation.FrameworkDescription,
        bridgesharp = Version(typeof(bridge)),
        torchsharp = Version(typeof(TorchSharp.torch)),
        libtorch = __version__,
        os = RuntimeInformation.OSDescription,
    };

    private static string Version(Type type) => type.Assembly.GetName().Version!.ToString(3);

    private static OrderedDictionary<string, string> Battery(JsonObject arguments)
    {
        set_num_threads((int)arguments["threads"]!);
        return Family.battery();
    }

    private static object RunBattery(JsonObject arguments)
    {
        set_num_threads((int)arguments["threads"]!);
        return Open(new Session(Family.results()));
    }

    private static object Open(Session session)
    {
        Sessions[++handles] = session;
        return new { handle = handles };
    }

    private static object OpenRun(JsonObject arguments)
    {
        var run = new FashionLeNet(arguments.Deserialize<Options>(Json)!);
        Open(new Session(run.trainer, run));
        return new { handle = handles, run.planned_steps, run.steps_per_epoch };
    }

    private static object RunExample(JsonObject arguments)
    {
        var name = (string)arguments["name"]!;
        set_num_threads((int)arguments["threads"]!);
        var result = Catalog.find(name)(arguments["setting"].Deserialize<Setting>(Json)!.Checked(), _ => { });
        Open(new Session(result.state));
        return new { handle = handles, result.losses, result.numbers };
    }

    private static object RunCase(JsonObject arguments, Segment segment)
    {
        var outcome = Runner.Run(arguments, segment);
        Open(new Session(outcome.Tensors));
        return new { handle = handles, texts = outcome.Texts };
    }

    private static object Step(JsonObject arguments, Segment segment)
    {
        using var scope = NewDisposeScope();
        var trainer = Find(arguments).Trainer;
        return new { loss = trainer.step(segment.ReadTree(arguments["inputs"])!, segment.ReadTree(arguments["targets"])!) };
    }

    private static object Forward(JsonObject arguments, Segment segment)
    {
        using var scope = NewDisposeScope();
        Find(arguments).Forward((Tensor)segment.ReadTree(arguments["inputs"])!);
        return new { };
    }

    private static object Trace(JsonObject arguments)
    {
        Find(arguments).Record((string?)arguments["path"], (bool)arguments["activation_gradients"]!, (string?)arguments["full"], (int?)arguments["full_step"]);
        return new { };
    }

    private static object StepLoop(JsonObject arguments, Segment segment)
    {
        using var scope = NewDisposeScope();
        var loss = Find(arguments).Loop.Step((Tensor)segment.ReadTree(arguments["inputs"])!, (Tensor)segment.ReadTree(arguments["targets"])!);
        return new { loss };
    }

    private static object Save(JsonObject arguments)
    {
        Find(arguments).Trainer.save((string)arguments["path"]!);
        return new { };
    }

    private static object Load(JsonObject arguments)
    {
        using var scope = NewDisposeScope();
        Find(arguments).Trainer.load((string)arguments["path"]!);
        return new { };
    }

    private static object SetRate(JsonObject arguments)
    {
        foreach (var group in Find(arguments).Trainer.optimizers.SelectMany(optimizer => optimizer.ParamGroups))
        {
            group.LearningRate = (double)arguments["lr"]!;
        }

        return new { };
    }

    private static object Close(JsonObject arguments)
    {
        Find(arguments).Dispose();
        Sessions.Remove((long)arguments["handle"]!);
        return new { };
    }

    private static Session Find(JsonObject arguments)
    {
        var handle = (long)arguments["handle"]!;
        return Sessions.TryGetValue(handle, out var session)
            ? session
            : throw new ArgumentException($"facade: expected an open handle, got {handle}");
    }
}

using System.CommandLine;
using BridgeSharp.Models.Recipes;

namespace BridgeSharp.Cli;

/// <summary>The commands and their options.</summary>
internal static class CommandLine
{
    private const int BadUsage = 2;

    private static readonly Option<long> Epochs = Default("--epochs", 1L, "How often to go through the training data.");
    private static readonly Option<long?> Steps = Optional<long?>("--steps", "Stop after so many steps.");
    private static readonly Option<int> Replicas = Default("--replicas", 2, "Replicas.");
    private static readonly Option<long> Batch = Default("--batch", 128L, "Samples per step, over all replicas.");
    private static readonly Option<string> Dtype = Choice("--dtype", "Element type.", "float64", "float32");
    private static readonly Option<string> Optimizer = Choice("--optimizer", "Optimizer.", "adam", "sgd");
    private static readonly Option<double?> Rate = Optional<double?>("--lr", "Learning rate [default: 0.001 for adam, 0.05 for sgd].");
    private static readonly Option<long> Seed = Default("--seed", 0L, "Of the weights and the order of the samples.");
    private static readonly Option<string> Device = Default("--device", "cpu", "cpu, cuda (a GPU per replica), or cuda:0.");
    private static readonly Option<string?> Data = Optional<string?>("--data", "Folder of the Fashion-MNIST files [default: Debian's package].");
    private static readonly Option<int> Threads = Default("--threads", Math.Max(1, Environment.ProcessorCount / 2), "Threads of libtorch.");
    private static readonly Option<string> Reference = Choice("--reference", "Whose optimizer formulas: PyTorch 2.10 or 1.13.", "2.10", "1.13");

    private static readonly Option<string?> Saved = Optional<string?>("--checkpoint", "File to save the run to, and to resume it from.");
    private static readonly Option<long> Every = Default("--every", 100L, "Save after so many steps, and at the end.");
    private static readonly Option<bool> Resume = Default("--resume", false, "Go on from the checkpoint, where there is one.");

    /// <summary>Run a command line.</summary>
    /// <param name="args">The arguments.</param>
    /// <returns>0, 1 where the run failed, or 2 on bad usage.</returns>
    public static int Run(string[] args)
    {
        var lenet = new Command("lenet", "Train LeNet on Fashion-MNIST.")
        {
            Epochs, Steps, Replicas, Batch, Dtype, Optimizer, Rate, Seed, Device, Data, Threads, Reference,
            Saved, Every, Resume,
        };
        lenet.SetAction(parsed => Guarded(() => Train(parsed)));
        var root = new RootCommand("Trains on TorchSharp with the meaning, and the bits, of PyTorch.")
        {
            new Command("train", "Train a reference model.") { lenet },
            ExampleCommand.Make(),
            DoctorCommand.Make(),
            ConvertCommand.Make(),
        };
        var parsed = root.Parse(args);
        var code = parsed.Invoke(new InvocationConfiguration { EnableDefaultExceptionHandler = false });
        return parsed.Errors.Count > 0 ? BadUsage : code;
    }

    /// <summary>Run an action and turn its errors into messages and exit codes.</summary>
    /// <param name="action">What to run.</param>
    /// <returns>Its exit code; 1 where it failed, 2 on bad usage.</returns>
    public static int Guarded(Func<int> action)
    {
        try
        {
            return action();
        }
        catch (Exception error) when (error is ArgumentException or FileNotFoundException)
        {
            Console.Error.WriteLine($"error: {error.Message}");
            return BadUsage;
        }
        catch (Exception error) when (error is DllNotFoundException or InvalidOperationException)
        {
            Console.Error.WriteLine($"error: {error.Message}");
            return 1;
        }
    }

    private static int Train(ParseResult parsed) => Training.Run(Job(parsed), new Saving(parsed.GetValue(Saved), parsed.GetValue(Every), parsed.GetValue(Resume)));

    private static Options Job(ParseResult parsed) => new()
    {
        epochs = parsed.GetValue(Epochs),
        steps = parsed.GetValue(Steps),
        replicas = parsed.GetValue(Replicas),
        batch = parsed.GetValue(Batch),
        dtype = parsed.GetValue(Dtype)!,
        optimizer = parsed.GetValue(Optimizer)!,
        lr = parsed.GetValue(Rate),
        seed = parsed.GetValue(Seed),
        device = parsed.GetValue(Device)!,
        data = parsed.GetValue(Data),
        threads = parsed.GetValue(Threads),
        reference = parsed.GetValue(Reference)!,
    };

    private static Option<T> Default<T>(string name, T value, string description)
        => new(name) { Description = description, DefaultValueFactory = _ => value };

    private static Option<T> Optional<T>(string name, string description) => new(name) { Description = description };

    private static Option<string> Choice(string name, string description, params string[] choices)
    {
        var option = new Option<string>(name) { Description = description, DefaultValueFactory = _ => choices[0] };
        option.AcceptOnlyFromAmong(choices);
        return option;
    }
}

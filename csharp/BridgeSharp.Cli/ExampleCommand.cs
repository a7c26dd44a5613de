using System.CommandLine;
using System.Globalization;
using BridgeSharp.Models.Examples;

namespace BridgeSharp.Cli;

/// <summary>Runs one of the example systems.</summary>
internal static class ExampleCommand
{
    private static readonly Argument<string> Name = new("name") { Description = string.Join(", ", Catalog.names) };
    private static readonly Option<int> Steps = Default("--steps", 20, "How many steps it trains.");
    private static readonly Option<int> Replicas = Default("--replicas", 2, "How many replicas, or parts.");
    private static readonly Option<long> Seed = Default("--seed", 0L, "Of the weights and the data.");
    private static readonly Option<string> Dtype = Default("--dtype", "float32", "Element type: float32 or float64.");

    /// <summary>Make the command.</summary>
    public static Command Make()
    {
        var command = new Command("example", "Run one of the example systems.") { Name, Steps, Replicas, Seed, Dtype };
        command.SetAction(parsed => CommandLine.Guarded(() => Run(parsed)));
        return command;
    }

    private static int Run(ParseResult parsed)
    {
        var run = Catalog.find(parsed.GetValue(Name)!);
        var setting = new Setting
        {
            steps = parsed.GetValue(Steps),
            replicas = parsed.GetValue(Replicas),
            seed = parsed.GetValue(Seed),
            dtype = parsed.GetValue(Dtype)!,
        };
        foreach (var (name, value) in run(setting.Checked(), Console.WriteLine).numbers)
        {
            Console.WriteLine(string.Create(CultureInfo.InvariantCulture, $"{name,-28}{value:g6}"));
        }

        return 0;
    }

    private static Option<T> Default<T>(string name, T value, string description)
        => new(name) { Description = description, DefaultValueFactory = _ => value };
}

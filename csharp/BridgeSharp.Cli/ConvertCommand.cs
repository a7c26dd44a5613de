using System.CommandLine;
using BridgeSharp.Conversion;
using Spectre.Console;

namespace BridgeSharp.Cli;

/// <summary>Moves weights between formats and languages.</summary>
internal static class ConvertCommand
{
    private const int Wide = 1000;
    private const int BadUsage = 2;
    private static readonly Argument<string> Source = new("source") { Description = "File to read, of any format." };
    private static readonly Argument<string> Target = new("target") { Description = "File to write." };
    private static readonly Option<string?> Kind = Text("--format", "torch, safetensors, torchsharp or tree [default: by the extension of TARGET].");
    private static readonly Option<string?> Part = Text("--part", "Part of SOURCE, such as optimizers/0 [default: the model].");
    private static readonly Option<string?> Names = Text("--map", "File of TOML or JSON: names and new names, * for any text.");
    private static readonly Option<string?> Strip = Text("--strip", "Prefix that names lose, before the map.");
    private static readonly Option<string?> Prefix = Text("--prefix", "Prefix that names get, after the map.");
    private static readonly Option<string?> Like = Text("--like", "File whose names and shapes TARGET must have.");
    private static readonly Option<string?> Dtype = Text("--dtype", "float16, bfloat16, float32 or float64.");
    private static readonly Option<bool> DryRun = new("--dry-run") { Description = "Show, and write nothing." };
    private static readonly Option<bool> Force = new("--force") { Description = "Replace TARGET." };

    /// <summary>Make the command.</summary>
    public static Command Make()
    {
        var command = new Command("convert", "Move weights between formats and languages, with a table of names.")
        {
            Source, Target, Kind, Part, Names, Strip, Prefix, Like, Dtype, DryRun, Force,
        };
        command.SetAction(parsed => CommandLine.Guarded(() => Run(parsed)));
        return command;
    }

    private static int Run(ParseResult parsed)
    {
        var (target, dry) = (parsed.GetValue(Target)!, parsed.GetValue(DryRun));
        Plan plan;
        try
        {
            var table = parsed.GetValue(Names) is { } path ? Mapping.Read(path) : [];
            plan = Converter.convert(
                parsed.GetValue(Source)!,
                target,
                parsed.GetValue(Kind),
                parsed.GetValue(Part),
                table,
                parsed.GetValue(Strip),
                parsed.GetValue(Prefix),
                parsed.GetValue(Like),
                parsed.GetValue(Dtype),
                dry,
                parsed.GetValue(Force));
        }
        catch (Exception error) when (error is IOException or UnauthorizedAccessException)
        {
            Console.Error.WriteLine($"error: {error.Message}");
            return error is FileNotFoundException or DirectoryNotFoundException ? BadUsage : 1;
        }

        Show(plan);
        Console.WriteLine(Verdict(plan, target, dry));
        return plan.faults.Count > 0 ? 1 : 0;
    }

    /// <summary>Print the table, and below it what did not match.</summary>
    private static void Show(Plan plan)
    {
        var console = AnsiConsole.Create(new AnsiConsoleSettings());
        if (Console.IsOutputRedirected)
        {
            console.Profile.Width = Wide;
        }

        var table = new Table().NoBorder();
        foreach (var column in new[] { "source", "target", "shape", "dtype", "note" })
        {
            _ = table.AddColumn(new TableColumn(column).PadLeft(0).PadRight(2));
        }

        foreach (var row in plan.rows)
        {
            string[] cells = [row.source, row.target, Shape(row.shape), row.dtype, row.note];
            _ = table.AddRow([.. cells.Select(cell => new Text(cell))]);
        }

        console.Write(table);
        foreach (var fault in plan.faults)
        {
            Console.WriteLine(fault);
        }
    }

    /// <summary>Write a shape as Python does.</summary>
    private static string Shape(IReadOnlyList<long> shape) => shape.Count == 1 ? $"({shape[0]},)" : $"({string.Join(", ", shape)})";

    /// <summary>Say in one line what was done.</summary>
    private static string Verdict(Plan plan, string target, bool dry)
    {
        if (plan.faults.Count > 0)
        {
            return $"not written: {plan.faults.Count} did not match";
        }

        return dry ? $"dry run: {plan.rows.Count} tensors would go to {target}" : $"{plan.rows.Count} tensors to {target}";
    }

    private static Option<string?> Text(string name, string description) => new(name) { Description = description };
}

using System.CommandLine;
using System.Text.Json;
using BridgeSharp.Doctor;

namespace BridgeSharp.Cli;

/// <summary>Looks at what the C# side needs, and says how to mend what is missing.</summary>
internal static class DoctorCommand
{
    private const int Name = 34;
    private static readonly JsonSerializerOptions Indented = new() { WriteIndented = true };
    private static readonly Option<bool> AsJson = new("--json") { Description = "Print JSON." };

    /// <summary>Make the command.</summary>
    public static Command Make()
    {
        var command = new Command("doctor", "Look at what is there, and say how to mend what is missing.") { AsJson };
        command.SetAction(parsed => CommandLine.Guarded(() => Run(parsed.GetValue(AsJson))));
        return command;
    }

    private static int Run(bool json)
    {
        var findings = Examination.examine();
        string[] missing = [.. findings.Where(finding => finding.state == "missing").Select(finding => finding.name)];
        if (json)
        {
            Console.WriteLine(JsonSerializer.Serialize(new { usable = missing.Length == 0, findings }, Indented));
        }
        else
        {
            foreach (var finding in findings)
            {
                Show(finding);
            }

            Console.WriteLine(missing.Length == 0 ? "usable" : $"not usable: {string.Join(", ", missing)} missing");
        }

        return missing.Length == 0 ? 0 : 1;
    }

    private static void Show(Finding finding)
    {
        var mark = finding.state switch { "ok" => " ", "note" => "!", _ => "x" };
        Console.WriteLine($"{mark} {finding.name.PadRight(Name)}{finding.value}");
        if (finding.remedy.Length > 0)
        {
            Console.WriteLine($"  {"".PadRight(Name)}-> {finding.remedy}");
        }
    }
}

namespace BridgeSharp.Optim;

/// <summary>A part of a <see cref="OneCycleLR"/>: until when, and between which entries of a group.</summary>
internal sealed record OneCyclePhase(double EndStep, string StartRate, string EndRate, string StartMomentum, string EndMomentum)
{
    private const string First = "initial_lr", Highest = "max_lr", Last = "min_lr", High = "max_momentum", Low = "base_momentum";

    /// <summary>List the two or three parts of a cycle.</summary>
    public static List<OneCyclePhase> All(double share, int steps, bool three) => three
        ?
        [
            new((share * steps) - 1, First, Highest, High, Low),
            new((2 * share * steps) - 2, Highest, First, Low, High),
            new(steps - 1, First, Last, High, High),
        ]
        :
        [
            new((share * steps) - 1, First, Highest, High, Low),
            new(steps - 1, Highest, Last, Low, High),
        ];

    /// <summary>Write the parts as PyTorch does.</summary>
    public static List<object?> Written(List<OneCyclePhase> phases) => phases.ConvertAll<object?>(phase => new Dictionary<string, object?>
    {
        // The last end is whole in PyTorch.
        ["end_step"] = phase == phases[^1] && phase.EndStep == Math.Floor(phase.EndStep) ? (object)(long)phase.EndStep : phase.EndStep,
        ["start_lr"] = phase.StartRate,
        ["end_lr"] = phase.EndRate,
        ["start_momentum"] = phase.StartMomentum,
        ["end_momentum"] = phase.EndMomentum,
    });

    /// <summary>Read the parts.</summary>
    public static List<OneCyclePhase> Read(object? given) => [.. StateFields.Items(given).Select(item =>
    {
        var entries = StateFields.Entries(item);
        string Name(string key) => StateFields.Typed<string>(entries.GetValueOrDefault(key));
        return new OneCyclePhase(
            StateFields.Number(entries.GetValueOrDefault("end_step")), Name("start_lr"), Name("end_lr"), Name("start_momentum"), Name("end_momentum"));
    })];
}

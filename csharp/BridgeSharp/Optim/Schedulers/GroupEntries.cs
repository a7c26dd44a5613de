using System.Runtime.CompilerServices;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>What schedulers keep in the parameter groups of an optimizer, as in PyTorch.</summary>
/// <remarks>
/// PyTorch's groups are dictionaries, to which schedulers add <c>initial_lr</c>, and some also <c>max_lr</c>,
/// <c>min_lr</c>, <c>max_momentum</c> and <c>base_momentum</c>: they belong to the optimizer's state. So are those of
/// BridgeSharp; for groups of other optimizers the entries are kept beside, as long as the group lives.
/// </remarks>
internal static class GroupEntries
{
    private static readonly ConditionalWeakTable<optim.ILearningRateController, Dictionary<string, double>> Others = [];

    /// <summary>Read an entry.</summary>
    public static double Get(optim.ILearningRateController group, string name)
    {
        if (group is ParamGroup own)
        {
            return StateFields.Number(own[name]);
        }

        return name == "initial_lr" ? group.InitialLearningRate : Others.GetOrCreateValue(group)[name];
    }

    /// <summary>Set an entry.</summary>
    public static void Set(optim.ILearningRateController group, string name, double value)
    {
        if (group is ParamGroup own)
        {
            own[name] = value;
            return;
        }

        Others.GetOrCreateValue(group)[name] = value;
        if (name == "initial_lr")
        {
            group.InitialLearningRate = value;
        }
    }

    /// <summary>Set the initial rate to the present one, unless a scheduler has set it before.</summary>
    public static void Begin(optim.ILearningRateController group)
    {
        if (group is ParamGroup own ? !own.has("initial_lr") : !Others.GetOrCreateValue(group).ContainsKey("initial_lr"))
        {
            Set(group, "initial_lr", group.LearningRate);
        }
    }

    /// <summary>Refuse a group without an initial rate; TorchSharp's always have one.</summary>
    public static void CheckBegun(optim.ILearningRateController group, int index, bool old)
    {
        if (group is ParamGroup own && !own.has("initial_lr"))
        {
            throw new KeyNotFoundException($"param 'initial_lr' is not specified in param_groups[{index}] when resuming " + (old
                ? "an optimizer"
                : "scheduler with last_epoch >= 0.\n"
                    + "This typically happens when:\n"
                    + "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
                    + "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"));
        }
    }
}

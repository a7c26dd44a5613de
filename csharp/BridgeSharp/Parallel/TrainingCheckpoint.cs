using System.Collections;
using BridgeSharp.Checkpoint;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>Training runs in files, of which nothing is taken before all is checked.</summary>
internal static class TrainingCheckpoint
{
    /// <summary>Write the whole state of a trainer.</summary>
    /// <remarks>Spec: R28.1.</remarks>
    public static void Save(TrainerStep training, string path, IStateful? loader, object? extra)
    {
        using var scope = NewDisposeScope();
        TreeFile.write(TrainingState.Gather(training, loader, extra), path);
    }

    /// <summary>Take the whole state of a trainer, and return what was put beside it.</summary>
    /// <remarks>Spec: R28.2, R28.3.</remarks>
    public static object? Load(TrainerStep training, string path, IStateful? loader)
    {
        using var scope = NewDisposeScope();
        var state = Checked(training, TreeFile.read(path), loader, Path.GetFileName(path));
        var before = loader?.state_dict();
        using (var transaction = training.Transaction())
        {
            transaction.BeforeUpdate(always: true);
            TrainingState.TakeModel(training, state);
            TrainingState.TakeOptimizers(training, state);
            try
            {
                loader?.load_state_dict(state["loader"]);
            }
            catch
            {
                loader!.load_state_dict(before);
                throw;
            }

            TrainingState.TakeRest(training, state);
            transaction.Commit();
        }

        return Tree.MoveToOuterScope(state["extra"]);
    }

    /// <summary>Refuse what is not the state of a trainer such as this one, with all that differs.</summary>
    private static Dictionary<string, object?> Checked(TrainerStep training, object? tree, IStateful? loader, string name)
    {
        var state = tree is IDictionary ? TrainingState.Entries(tree) : [];
        if (state.GetValueOrDefault("kind") as string != TrainingState.Kind)
        {
            throw new CheckpointException($"load: expected the state of a trainer in {name}, got another tree");
        }

        if (state.GetValueOrDefault("version") is not TrainingState.Version)
        {
            throw new CheckpointException(
                $"load: expected version {TrainingState.Version} of a trainer's state in {name}, got {state.GetValueOrDefault("version") ?? "None"}");
        }

        if (!state.Keys.ToHashSet().SetEquals(TrainingState.Keys))
        {
            var odd = string.Join(", ", TrainingState.Keys.Except(state.Keys).Union(state.Keys.Except(TrainingState.Keys)).Order(StringComparer.Ordinal));
            throw new CheckpointException($"load: expected the parts of a trainer's state in {name}, got another set: {odd}");
        }

        List<string> lines = [.. Lines(training, state, loader)];
        return lines.Count == 0
            ? state
            : throw new CheckpointException($"load: expected a trainer like that of {name}, got another:\n\t{string.Join("\n\t", lines)}");
    }

    /// <summary>Say what differs between a trainer and a state.</summary>
    private static IEnumerable<string> Lines(TrainerStep training, Dictionary<string, object?> state, IStateful? loader)
    {
        List<string> different = [.. Configuration.Differences(training, TrainingState.Entries(state["configuration"]))];
        if ((loader is null) != (state["loader"] is null))
        {
            different.Add(loader is null ? "loader: one in the file, none here" : "loader: none in the file, one here");
        }

        different.AddRange(StateDict.Faults(StateDict.Of(training.Replicas[0]), AsStateDict.as_state_dict(state["model"])));
        return different.Count > 0 ? different : Inside(training, state);
    }

    /// <summary>Say what differs between a trainer and a state of the same kind.</summary>
    private static IEnumerable<string> Inside(TrainerStep training, Dictionary<string, object?> state)
    {
        foreach (var line in Configuration.Misplaced(training, (List<object?>)state["parameters"]!))
        {
            yield return line;
        }

        foreach (var (index, saved) in ((List<object?>)state["buffers"]!).Index())
        {
            foreach (var line in StateDict.Faults(TrainingState.Apart(training, index), AsStateDict.as_state_dict(saved)))
            {
                yield return $"replica {index}: {line}";
            }
        }

        var sums = (List<object?>)TrainingState.Entries(state["accumulator"])["sums"]!;
        foreach (var (index, parameter) in Registered.Parameters(training.Replicas[0]).Index())
        {
            if (index >= sums.Count || (sums[index] is Tensor held && !held.shape.SequenceEqual(parameter.shape)))
            {
                yield return $"accumulator: other gradients than those of parameter {index}";
            }
        }

        using var expected = random.get_rng_state();
        var states = (List<object?>)TrainingState.Entries(state["random"])["cpu"]!;
        for (var index = 0; index < training.Replicas.Count; index++)
        {
            if (index >= states.Count || states[index] is not Tensor held || held.dtype != expected.dtype || !held.shape.SequenceEqual(expected.shape))
            {
                yield return $"random: no state of {expected.shape[0]} bytes for replica {index}";
            }
        }
    }
}

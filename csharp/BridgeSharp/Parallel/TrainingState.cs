using BridgeSharp.Checkpoint;
using BridgeSharp.Parallel;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp
{
    /// <summary>What can be saved: a loader, a scheduler or an optimizer.</summary>
    public interface IStateful
    {
        /// <summary>Return its state.</summary>
        /// <returns>Any tree that a checkpoint holds.</returns>
        object? state_dict();

        /// <summary>Take a state.</summary>
        /// <param name="state">The tree.</param>
        void load_state_dict(object? state);
    }
}

namespace BridgeSharp.Parallel
{
    /// <summary>The whole state of a training run, as a tree.</summary>
    internal static class TrainingState
    {
        /// <summary>What the tree says that it is.</summary>
        public const string Kind = "trainer";

        /// <summary>The version of the tree.</summary>
        public const long Version = 1;

        /// <summary>The parts of the tree.</summary>
        public static readonly string[] Keys =
        [
            "kind", "version", "configuration", "model", "buffers", "parameters", "optimizers", "schedulers",
            "random", "accumulator", "counts", "loader", "extra",
        ];

        /// <summary>Collect the state of a trainer, of its loader, and what the user puts beside it.</summary>
        /// <remarks>
        /// Its tensors are those in use, but for the random states, which go to the dispose scope. Spec: R28.1.
        /// </remarks>
        /// <exception cref="ArgumentException">
        /// A state of an optimizer, a scheduler or a loader, or an extra, that a checkpoint cannot hold; the class and the
        /// place are given.
        /// </exception>
        public static OrderedDictionary<string, object?> Gather(TrainerStep training, IStateful? loader, object? extra)
        {
            var (batches, total, sums) = training.Accumulator.State;
            return new()
            {
                ["kind"] = Kind,
                ["version"] = Version,
                ["configuration"] = Configuration.Of(training),
                ["model"] = StateDict.Of(training.Replicas[0]),
                ["buffers"] = training.Replicas.Select((_, index) => (object?)Apart(training, index)).ToList(),
                ["parameters"] = Configuration.Placed(training),
                ["optimizers"] = training.Optimizers.Select(StateOf).ToList(),
                ["schedulers"] = training.Schedulers.Select(StateOf).ToList(),
                ["random"] = RandomState(training.States),
                ["accumulator"] = new OrderedDictionary<string, object?> { ["batches"] = batches, ["total"] = total, ["sums"] = sums.Cast<object?>().ToList() },
                ["counts"] = new OrderedDictionary<string, object?>
                {
                    ["steps"] = training.Steps,
                    ["updates"] = training.Updates,
                    ["drew"] = training.Drew,
                    ["open"] = training.Open,
                },
                ["loader"] = loader is null ? null : StateOf(loader),
                ["extra"] = Held(extra, extra),
            };
        }

        /// <summary>List the buffers of a replica that are not in the state of the model.</summary>
        public static OrderedDictionary<string, Tensor> Apart(TrainerStep training, int index)
        {
            var known = index == 0 ? StateDict.Of(training.Replicas[0]) : [];
            return new(Registered.Buffers(training.Replicas[index]).Where(buffer => !known.ContainsKey(buffer.Name))
                .Select(buffer => KeyValuePair.Create(buffer.Name, buffer.Tensor)));
        }

        /// <summary>Give every replica the state of the model and its own buffers; no gradient stays.</summary>
        public static void TakeModel(TrainerStep training, IReadOnlyDictionary<string, object?> state)
        {
            StateDict.Load(training.Replicas[0], AsStateDict.as_state_dict(state["model"]));
            bridge.resync(training.Replicas);
            using var mode = no_grad();
            foreach (var (replica, saved) in training.Replicas.Zip((List<object?>)state["buffers"]!))
            {
                var own = Registered.Buffers(replica).ToDictionary(buffer => buffer.Name, buffer => buffer.Tensor);
                foreach (var (name, value) in AsStateDict.as_state_dict(saved))
                {
                    own[name].copy_(value);
                }
            }

            foreach (var parameter in training.Replicas.SelectMany(Registered.Parameters))
            {
                parameter.grad = null;
            }
        }

        /// <summary>Give optimizers and schedulers their states, with every bit and dtype as it was.</summary>
        public static void TakeOptimizers(TrainerStep training, IReadOnlyDictionary<string, object?> state)
        {
            foreach (var (own, saved) in training.Optimizers.Zip((List<object?>)state["optimizers"]!))
            {
                AsStateful(own, "load").load_state_dict(saved);
            }

            foreach (var (own, saved) in training.Schedulers.Zip((List<object?>)state["schedulers"]!))
            {
                AsStateful(own, "load").load_state_dict(saved);
            }
        }

        /// <summary>Take random states, pending gradients and counts: what cannot fail once it is checked.</summary>
        public static void TakeRest(TrainerStep training, IReadOnlyDictionary<string, object?> state)
        {
            training.States.restore([.. ((List<object?>)Entries(state["random"])["cpu"]!).Cast<Tensor>()]);
            var held = Entries(state["accumulator"]);
            var sums = ((List<object?>)held["sums"]!).Cast<Tensor?>();
            var places = Registered.Parameters(training.Replicas[0]);
            var copies = sums.Zip(places, (sum, place) => sum?.to(place.device, copy: true).DetachFromDisposeScope()).ToArray();
            training.Accumulator.Restore(((int)(long)held["batches"]!, (double)held["total"]!, copies));
            var counts = Entries(state["counts"]);
            (training.Steps, training.Updates) = ((long)counts["steps"]!, (long)counts["updates"]!);
            (training.Drew, training.Open) = ((bool?)counts["drew"], (bool)counts["open"]!);
        }

        /// <summary>Read a dictionary with keys of strings.</summary>
        public static Dictionary<string, object?> Entries(object? value) => Optim.StateFields.Entries(value);

        /// <summary>Collect the random states: the caller's stream, then those of the other replicas; there are none of GPUs.</summary>
        private static OrderedDictionary<string, object?> RandomState(RandomStates states)
        {
            var taken = states.snapshot();
            var copies = taken.Select(state => (object?)state.clone()).ToList();
            Array.ForEach(taken, state => state.Dispose());
            return new() { ["cpu"] = copies, ["cuda"] = new List<object?>() };
        }

        private static object? StateOf(object owner) => Held(owner, AsStateful(owner, "save").state_dict());

        private static IStateful AsStateful(object owner, string function) => owner as IStateful
            ?? throw new ArgumentException($"{function}: expected an optimizer or scheduler of BridgeSharp.Optim, or an IStateful, got {Tree.Name(owner.GetType())}");

        /// <summary>Refuse a state that a checkpoint cannot hold, by the class that it is of.</summary>
        private static object? Held(object? owner, object? state)
        {
            try
            {
                Document.Encode(state);
                return state;
            }
            catch (ArgumentException error)
            {
                throw new ArgumentException($"save: {Tree.Name(owner!.GetType())}: {error.Message.Replace("write: ", "", StringComparison.Ordinal)}");
            }
        }
    }
}

using BridgeSharp.Checkpoint;
using BridgeSharp.Data;
using BridgeSharp.Models;
using BridgeSharp.Optim;
using TorchSharp;
using TorchSharp.Modules;
using Xunit;
using static TorchSharp.torch;
using static TorchSharp.torch.nn.functional;

namespace BridgeSharp.Tests.Spec;

/// <summary>Whole training runs in files.</summary>
[Collection(nameof(Serial))]
public sealed class TrainingCheckpointTests : IDisposable
{
    private const int Epochs = 3;
    private readonly CheckpointFolder folder = new();
    private readonly DisposeScope scope = NewDisposeScope();

    public static TheoryData<string> Optimizers => ["sgd", "adam", "adamw", "rmsprop", "adagrad", "adamax", "nadam", "radam", "asgd", "adadelta", "rprop"];

    /// <summary>Remove the files.</summary>
    public void Dispose()
    {
        scope.Dispose();
        folder.Dispose();
    }

    /// <summary>Saved at any step, the last of an epoch included, fit ends with the same bits. Spec: R28.2, R28.4.</summary>
    [Theory]
    [MemberData(nameof(Optimizers))]
    public void A_run_goes_on_as_if_unbroken(string name)
    {
        var options = new TrainerOptions { accumulate = 3, clip_norm = 0.5, scheduler = own => new StepLR(own, 2) };
        using var unbroken = Run(name, options);
        unbroken.fit(Batches(), Epochs);
        var expected = Ended(unbroken);
        int[] cuts = name == "nadam" ? [1, 3, 4, 7, 12] : [5];
        foreach (var cut in cuts)
        {
            using var broken = Run(name, options);
            var data = Batches();
            Assert.Throws<OperationCanceledException>(() => broken.fit(data, Epochs, (number, _) =>
            {
                if (number == cut)
                {
                    broken.save(folder.Path, data, 0.5);
                    throw new OperationCanceledException();
                }
            }));
            using var resumed = Run(name, options);
            data = Batches();
            Assert.Equal(0.5, resumed.load(folder.Path, data));
            Assert.Equal(cut, resumed.steps);
            resumed.fit(data, Epochs - (int)data.epoch);
            CheckpointFolder.Exact(expected, Ended(resumed));
        }
    }

    /// <summary>Every bit is as it was, and so is the stream; loaded and saved it is the same. Spec: R28.1, R28.5.</summary>
    [Fact]
    public void Saving_changes_and_draws_nothing()
    {
        var options = new TrainerOptions { accumulate = 2 };
        using var run = Run("adam", options);
        var data = Batches();
        run.fit(data);
        run.save(folder.Path, data, ones(2));
        var first = File.ReadAllBytes(folder.Path);
        run.save(folder.Path, data, ones(2));
        Assert.Equal(first, File.ReadAllBytes(folder.Path));

        using var other = Run("adam", options);
        data = Batches();
        var extra = other.load(folder.Path, data);
        other.save(folder.Path, data, extra);
        Assert.Equal(first, File.ReadAllBytes(folder.Path));
    }

    /// <summary>A file of another trainer is refused with all that differs, and nothing changes. Spec: R28.3.</summary>
    [Fact]
    public void All_that_differs_is_listed()
    {
        using var run = Run("adam", new() { accumulate = 2, clip_norm = 1, scaling = new LinearScaling(2, 3) });
        run.save(folder.Path, Batches());
        using var other = Run("sgd", new() { mode = "all", scheduler = own => new StepLR(own, 2) });
        Refused(
            other,
            "load: expected a trainer like that of data.bin, got another:\n"
            + "\toptimizer: Adam in the file, SGD here\n"
            + "\tscheduler: None in the file, StepLR here\n"
            + "\tmode: master in the file, all here\n"
            + "\taccumulate: 2 in the file, 1 here\n"
            + "\tclip_norm: 1.0 in the file, None here\n"
            + "\tscaling: factor 2.0, warm_up 3 in the file, None here\n"
            + "\tloader: one in the file, none here");
    }

    /// <summary>Another tree, another version and damage are refused by that. Spec: R28.3.</summary>
    [Fact]
    public void Other_files_are_refused()
    {
        using var run = Run("adam", new());
        run.save(folder.Path);
        var content = File.ReadAllBytes(folder.Path);
        foreach (var (key, value, expected) in new (string, object, string)[]
        {
            ("kind", "other", "load: expected the state of a trainer in data.bin, got another tree"),
            ("version", 2L, "load: expected version 1 of a trainer's state in data.bin, got 2"),
            ("more", 1L, "load: expected the parts of a trainer's state in data.bin, got another set: more"),
        })
        {
            File.WriteAllBytes(folder.Path, content);
            var tree = (OrderedDictionary<object, object?>)TreeFile.read(folder.Path)!;
            tree[key] = value;
            TreeFile.write(tree, folder.Path);
            Refused(run, expected);
        }

        var flipped = content.ToArray();
        flipped[^100] ^= 4;
        File.WriteAllBytes(folder.Path, flipped);
        Refused(run, null);
        File.WriteAllBytes(folder.Path, content[..^1]);
        Refused(run, null);
    }

    /// <summary>Model, optimizer, loader and random states are as they were after a failure half-way. Spec: R28.3.</summary>
    [Fact]
    public void A_failure_half_way_changes_nothing()
    {
        using var run = Run("adam", new());
        var data = new Fragile();
        run.fit(Batches());
        run.save(folder.Path, data);
        using var other = Run("adam", new());
        other.fit(Batches());
        var before = Ended(other);
        data.fails = true;
        Assert.Throws<TimeoutException>(() => other.load(folder.Path, data));
        CheckpointFolder.Exact(before, Ended(other));
        Assert.Equal(1L, data.value);
        other.load(folder.Path, data);
        CheckpointFolder.Exact(Ended(run), Ended(other));
    }

    /// <summary>An optimizer of TorchSharp, and what is put beside the state. Spec: R28.1.</summary>
    [Fact]
    public void What_no_file_holds_is_refused_by_name()
    {
        using var model = new DropoutNet();
        using var optimizer = optim.SGD(model.parameters(), 0.1);
        using var trainer = new Trainer(model, optimizer, (outputs, targets) => cross_entropy(outputs, targets));
        var error = Assert.Throws<ArgumentException>(() => trainer.save(folder.Path));
        Assert.Equal("save: expected an optimizer or scheduler of BridgeSharp.Optim, or an IStateful, got SGD", error.Message);
        using var run = Run("adam", new());
        error = Assert.Throws<ArgumentException>(() => run.save(folder.Path, extra: new Uri("file:///x")));
        Assert.StartsWith("save: Uri: expected a dict, list, tuple, tensor, number, text, boolean or None at tree, got ", error.Message, StringComparison.Ordinal);
        Assert.Empty(folder.Entries);
    }

    /// <summary>Make a trainer of two replicas, whose model draws.</summary>
    private static Trainer Run(string name, TrainerOptions options)
    {
        random.manual_seed(3);
        var model = new DropoutNet().to(float64);
        return new Trainer(
            model,
            parameters => Optim.Optimizers.create(name, parameters),
            (outputs, targets) => (cross_entropy((Tensor)outputs, (Tensor)targets), 1),
            [CPU, CPU],
            options);
    }

    private static Loader<(object, object)> Batches()
    {
        using var generator = new Generator(1);
        var inputs = randn([22, 8], dtype: float64, generator: generator);
        return new Loader<(object, object)>((inputs, randint(0, 4, [22], dtype: int64, generator: generator)), 6, seed: 2);
    }

    /// <summary>Copy the state of a run and the stream.</summary>
    private static List<object?> Ended(Trainer run)
    {
        List<object?> state = [run.updates, run.steps, random.get_rng_state()];
        state.AddRange(run.state_dict().Values.Select(tensor => (object?)tensor.clone()));
        foreach (var optimizer in run.optimizers.Cast<Optimizer>())
        {
            var entries = (System.Collections.IDictionary)optimizer.state_dict()["state"]!;
            state.AddRange(entries.Values.Cast<System.Collections.IDictionary>()
                .SelectMany(own => own.Values.Cast<object?>()).Select(value => value is Tensor tensor ? tensor.clone() : value));
        }

        return state;
    }

    private void Refused(Trainer run, string? expected)
    {
        var before = Ended(run);
        var error = Assert.Throws<CheckpointException>(() => run.load(folder.Path));
        Assert.Equal(expected ?? error.Message, error.Message);
        Assert.Contains("data.bin", error.Message, StringComparison.Ordinal);
        CheckpointFolder.Exact(before, Ended(run));
    }

    /// <summary>A loader of the user's own that fails after it has taken a state.</summary>
    private sealed class Fragile : IStateful
    {
        public bool fails { get; set; }

        public long value { get; private set; } = 1;

        public object? state_dict() => value;

        public void load_state_dict(object? state)
        {
            value = fails ? 7 : (long)state!;
            if (fails)
            {
                fails = false;
                throw new TimeoutException();
            }
        }
    }
}

import pytest
import yaml

from cdclust import recipe as recipes
from cdclust.errors import UserError
from cdclust.recipe import FIELDS, Recipe, full_name, leaves, load, parse_set, shipped, validated

all_shipped = pytest.mark.parametrize("name", shipped())


@pytest.fixture
def file(tmp_path):
    def write(text: str, name: str = "mine.yaml") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


def refused(call, *words: str) -> None:
    with pytest.raises(UserError) as error:
        call()
    said = str(error.value)
    assert "\n" not in said
    assert len(said) < 400
    for word in words:
        assert word in said


def test_the_recipes_of_the_paper_and_of_a_laptop_are_shipped():
    assert {"cifar10", "cifar100-20", "stl10", "imagenet", "digits", "cifar10-laptop", "images"} <= set(shipped())


@all_shipped
def test_a_shipped_recipe_survives_being_written_and_read(name, file):
    recipe = load(name)
    assert recipe.name == name
    assert recipe.about
    assert load(file(recipe.to_yaml())) == recipe


@all_shipped
def test_what_a_recipe_changes_of_its_base_does_not_claim_the_bases_origin(name):
    tree = yaml.safe_load((recipes.resources.files("cdclust") / "recipes" / f"{name}.yaml").read_text())
    own = tree.pop("origin", {})
    stated = set(leaves({key: value for key, value in tree.items() if key != "base"}))
    assert {field for field in load(name).origin if field in stated} <= set(own)


def test_the_papers_settings_for_cifar10():
    r = load("cifar10")
    assert (r.objective.alpha, r.objective.tau, r.objective.t, r.objective.epsilon) == (5.0, 0.15, 0.10, 0.05)
    assert (r.objective.sinkhorn_iterations, r.head.z_n, r.network.backbone) == (3, 128, "resnet18")
    assert (r.optimizer.name, r.optimizer.lr, r.optimizer.momentum, r.optimizer.weight_decay) == (
        "sgd",
        0.06,
        0.9,
        5e-4,
    )
    assert (r.training.epochs, r.training.batch_size) == (1200, 512)


def test_a_field_is_set_by_its_full_or_its_short_name():
    for name in ("objective.alpha", "alpha"):
        assert Recipe().changed({name: 2}).objective.alpha == 2.0
    assert Recipe().changed({"views.change.hue": 0.2, "change.flip": 0}).views.change == {"hue": 0.2, "flip": 0}


@pytest.mark.parametrize(
    ("short", "choices"),
    [("momentum", ("method.momentum", "optimizer.momentum")), ("size", ("data.size", "views.size"))],
)
def test_an_ambiguous_short_name_lists_the_choices(short, choices):
    refused(lambda: full_name(short), *choices)


def test_name_is_not_taken_for_the_recipes_own_when_the_optimisers_may_be_meant():
    changed = Recipe().changed({"name": "adamw"})
    assert (changed.name, changed.optimizer.name) == ("custom", "adamw")


@pytest.mark.parametrize(("typo", "near"), [("alhpa", "objective.alpha"), ("optimizer.Ir", "optimizer.lr")])
def test_a_typo_in_set_names_the_nearest_field(typo, near):
    refused(lambda: Recipe().changed({typo: 1}), typo, f"did you mean {near}")


def test_a_typo_in_a_file_names_the_nearest_field(file):
    refused(lambda: load(file("objective: {alhpa: 1}")), "objective.alhpa", "did you mean objective.alpha")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_clusters", 1),
        ("seed", -1),
        ("alpha", -1),
        ("alpha", "much"),
        ("tau", 0),
        ("lr", float("nan")),
        ("t", float("nan")),
        ("epochs", 0),
        ("epochs", 1.5),
        ("batch_size", 1),
        ("framework", "byol"),
        ("blocks", "many"),
        ("data.channels", 2),
        ("alpha_warmup", 1),
        ("sinkhorn_input", "probabilities"),
        ("momentum_to_one", "perhaps"),
        ("method.momentum", 1.1),
    ],
)
def test_a_wrong_value_is_refused_in_one_line_that_names_field_and_value(field, value):
    refused(lambda: Recipe().changed({field: value}), full_name(field), repr(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("alpha=1", 1),
        ("lr=1e-4", 1e-4),
        ("lr=1E-4", 1e-4),
        ("blocks=[1, 2]", [1, 2]),
        ("data.mean=null", None),
        ("split=false", False),
        ("policy=moco-v2", "moco-v2"),
        ("about=a=b", "a=b"),
    ],
)
def test_values_in_set_are_yaml_and_1e_4_is_a_number(text, expected):
    assert list(parse_set([text]).values()) == [expected]


def test_1e_4_is_a_number_in_a_file_too(file):
    assert load(file("optimizer: {lr: 1e-4}")).optimizer.lr == 1e-4


@pytest.mark.parametrize(("text", "words"), [("alpha", "field=value"), ("alpha=[1", "is not a value")])
def test_a_set_that_is_no_assignment_is_refused(text, words):
    refused(lambda: parse_set([text]), f"--set {text}", words)


def test_a_recipe_states_only_what_differs_from_its_base(file):
    found = load(file("base: digits\nobjective: {alpha: 2}\nviews: {change: {hue: 0.1}}\nnetwork: {blocks: [2, 2]}"))
    digits = load("digits")
    assert found.objective.alpha == 2
    assert found.network.blocks == (2, 2)  # a list is replaced, not joined
    assert found.views.policy == digits.views.policy
    assert found.optimizer == digits.optimizer


def test_a_base_may_have_a_base_and_may_be_a_file(file):
    middle = file("base: cifar10\ntraining: {epochs: 7}", "middle.yaml")
    found = load(file(f"base: {middle}\ntraining: {{batch_size: 64}}"))
    assert (found.training.epochs, found.training.batch_size, found.objective.tau) == (7, 64, 0.15)


def test_an_unknown_recipe_names_the_nearest(tmp_path):
    refused(lambda: load("cifar-10"), "'cifar-10'", "did you mean cifar10")


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "just words", "a: [1", "", "\tx: 1"])
def test_a_file_that_is_no_recipe_is_refused(file, text):
    refused(lambda: load(file(text)), "mine.yaml")


def test_an_origin_names_a_field(file):
    assert load(file("origin: {objective.alpha: paper}")).origin == {"objective.alpha": "paper"}
    refused(lambda: load(file("origin: {objective.alhpa: paper}")), "objective.alhpa", "no field")


def test_a_value_that_the_user_changes_is_no_longer_the_papers():
    changed = load("cifar10").changed({"alpha": 1})
    assert "objective.alpha" not in changed.origin
    assert changed.origin["objective.tau"] == "paper"


def test_a_recipe_does_not_change_after_validation():
    with pytest.raises(ValueError, match="frozen"):
        Recipe().objective.alpha = 3


def test_no_yaml_tag_runs_code(file, tmp_path):
    harmed = tmp_path / "harmed"
    refused(lambda: load(file(f"name: !!python/object/apply:os.mkdir ['{harmed}']")), "not YAML")
    assert not harmed.exists()


def test_every_field_is_described_with_its_value():
    described = {field: value for field, value, _ in recipes.described(Recipe())}
    assert set(described) == set(FIELDS) - {"name", "about"}
    assert described["objective.alpha"] == 5.0


def test_plain_values_are_enough_for_a_recipe():
    assert validated({"n_clusters": 3}).n_clusters == 3

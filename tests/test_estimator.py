import doctest
import pickle

import numpy as np
import pytest
import torch
from PIL import Image
from sklearn.base import clone, is_clusterer
from sklearn.exceptions import NotFittedError
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks

from cdclust import CDC, estimator
from cdclust.errors import UserError

# Of scikit-learn's checks those that never call fit: all others hand over 2-D tables of features, and X here is images.
CHECKS = (
    "check_parameters_default_constructible",
    "check_no_attributes_set_in_init",
    "check_get_params_invariance",
    "check_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimators_unfitted",
    "check_estimator_tags_renamed",
    "check_valid_tag_types",
    "check_mixin_order",
)
SETTINGS = {
    "network.width": 4,
    "network.blocks": [1, 1],
    "head.hidden": 16,
    "head.z_n": 8,
    "method.queue": 40,
    "method.split_batch_norm": 2,
    "data.size": None,
    "batch_size": 16,
    "epochs": 1,
}


def cdc(**changes) -> CDC:
    return CDC(**({"n_clusters": 4, "settings": SETTINGS, "device": "cpu", "precision": "fp32"} | changes))


@pytest.fixture(scope="module")
def fitted(pictures, classes):
    torch.set_num_threads(1)
    return cdc().fit(pictures, classes)


@pytest.mark.parametrize("name", CHECKS)
def test_scikit_learns_own_checks_pass(name):
    if not hasattr(estimator_checks, name):
        pytest.skip("not in this version of scikit-learn")
    getattr(estimator_checks, name)("CDC", CDC())


def test_the_constructor_stores_what_it_is_given_and_does_nothing_else():
    settings, out = {"no such field": 1}, object()
    model = CDC("many", recipe="none such", settings=settings, out=out, device="abacus")
    assert (model.n_clusters, model.recipe, model.device) == ("many", "none such", "abacus")
    assert model.settings is settings
    assert model.out is out
    assert vars(model).keys() == model.get_params().keys()


def test_a_clone_has_the_parameters_and_nothing_learned(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "labels_")


def test_set_params_changes_what_fit_does(pictures):
    model = cdc().set_params(n_clusters=3, random_state=7)
    assert model.fit(pictures).predict_proba(pictures[:5]).shape == (5, 3)


def test_fit_does_not_change_the_parameters(fitted):
    assert fitted.get_params() == cdc().get_params()


@pytest.mark.parametrize("call", ["predict", "predict_proba", "transform"])
def test_before_fit_scikit_learns_own_error_is_raised(call, pictures):
    with pytest.raises(NotFittedError):
        getattr(cdc(), call)(pictures)


def test_what_is_learned_has_an_entry_an_image(fitted, pictures):
    n = len(pictures)
    assert fitted.labels_.shape == fitted.probabilities_.shape == (n,)
    assert fitted.embedding_.shape == (n, 8)
    assert set(fitted.labels_) <= set(range(4))
    assert len(fitted.history_) == 1
    assert fitted.metrics_["n_images"] == n


def test_predict_proba_sums_to_1_and_its_largest_is_the_prediction(fitted, pictures):
    p = fitted.predict_proba(pictures)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_array_equal(p.argmax(axis=1), fitted.predict(pictures))
    np.testing.assert_array_equal(p.max(axis=1), fitted.probabilities_)


def test_the_training_images_are_predicted_as_labelled(fitted, pictures):
    np.testing.assert_array_equal(fitted.predict(pictures), fitted.labels_)
    np.testing.assert_array_equal(fitted.transform(pictures), fitted.embedding_)


def test_an_image_is_predicted_the_same_in_any_company(fitted, pictures):
    np.testing.assert_allclose(fitted.predict_proba(pictures[5:6]), fitted.predict_proba(pictures)[5:6], atol=1e-5)


def test_fit_predict_is_fit_and_labels(fitted, pictures):
    model = cdc()
    np.testing.assert_array_equal(model.fit_predict(pictures), model.labels_)
    np.testing.assert_array_equal(model.labels_, fitted.labels_)


def test_fit_transform_is_fit_and_transform(fitted, pictures):
    np.testing.assert_array_equal(cdc().fit_transform(pictures), fitted.embedding_)


def test_a_pickled_model_predicts_the_same(fitted, pictures):
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_proba(pictures), fitted.predict_proba(pictures))
    np.testing.assert_array_equal(copy.labels_, fitted.labels_)


def test_y_changes_nothing_but_the_scores(fitted, pictures, classes):
    blind = cdc().fit(pictures)
    np.testing.assert_array_equal(blind.labels_, fitted.labels_)
    np.testing.assert_array_equal(blind.embedding_, fitted.embedding_)
    assert "acc" not in blind.metrics_
    assert fitted.metrics_["ari"] == pytest.approx(adjusted_rand_score(classes, fitted.labels_), abs=1e-6)


def test_it_is_the_last_step_of_a_pipeline(fitted, pictures):
    pipeline = make_pipeline(FunctionTransformer(lambda x: 255 - x), cdc())
    clusters = pipeline.fit_predict(255 - pictures)
    np.testing.assert_array_equal(clusters, fitted.labels_)
    np.testing.assert_array_equal(pipeline.predict(255 - pictures), fitted.labels_)
    pipeline.set_params(cdc__n_clusters=3)
    assert pipeline[-1].n_clusters == 3


def test_it_says_that_it_clusters():
    assert is_clusterer(CDC())


@pytest.mark.parametrize(
    "form",
    [
        lambda x: torch.from_numpy(x),
        lambda x: x.transpose(0, 3, 1, 2),
        lambda x: x / 255.0,
        lambda x: torch.utils.data.TensorDataset(torch.from_numpy(x).permute(0, 3, 1, 2)),
    ],
    ids=["tensor", "channels first", "floats", "torch Dataset"],
)
def test_images_may_come_in_any_form(fitted, pictures, form):
    np.testing.assert_array_equal(fitted.predict(form(pictures)), fitted.labels_)


@pytest.fixture
def paths(tmp_path, pictures):
    found = []
    for number, picture in enumerate(pictures):
        Image.fromarray(picture).save(tmp_path / f"{number:02}.png")
        found.append(tmp_path / f"{number:02}.png")
    return found


def test_paths_are_read_as_the_arrays_they_hold(fitted, paths):
    np.testing.assert_array_equal(fitted.predict(paths), fitted.labels_)


def test_an_unreadable_image_gets_minus_one(paths):
    paths[3].write_bytes(b"no image")
    paths[7].unlink()
    model = cdc().fit(paths)
    assert np.flatnonzero(model.labels_ == -1).tolist() == [3, 7]
    assert model.labels_.shape == (48,)
    assert not model.embedding_[[3, 7]].any()
    assert not model.probabilities_[[3, 7]].any()
    assert np.flatnonzero(model.predict(paths) == -1).tolist() == [3, 7]
    assert not model.predict_proba(paths)[[3, 7]].any()
    assert model.metrics_["n_unreadable"] == 2


def test_the_run_folder_is_kept_where_asked_and_gone_on_with(pictures, tmp_path):
    first = cdc(out=tmp_path / "run").fit(pictures)
    assert (tmp_path / "run" / "metrics.json").exists()
    with pytest.raises(UserError, match="exists already"):
        cdc(out=tmp_path / "run").fit(pictures)
    again = cdc(out=tmp_path / "run", resume=True).fit(pictures)
    np.testing.assert_array_equal(again.labels_, first.labels_)


def test_another_random_state_is_another_model(fitted, pictures):
    assert not np.array_equal(cdc(random_state=1).fit(pictures).embedding_, fitted.embedding_)


def test_torchs_own_generator_does_not_matter(fitted, pictures):
    torch.manual_seed(12345)
    np.testing.assert_array_equal(cdc().fit(pictures).embedding_, fitted.embedding_)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_clusters": 1}, "n_clusters = 1"),
        ({"n_clusters": 49}, "49 is more than the 48 images"),
        ({"recipe": "digit"}, "did you mean digits"),
        ({"settings": {"alhpa": 1}}, "did you mean objective.alpha"),
        ({"device": "abacus"}, "abacus"),
        ({"precision": "fp64"}, "fp64"),
    ],
)
def test_a_wrong_parameter_is_refused_by_fit_in_words(changes, words, pictures):
    with pytest.raises(UserError, match=words):
        cdc(**changes).fit(pictures)


def test_labels_of_another_number_are_refused(pictures):
    with pytest.raises(UserError, match="47 labels for 48 images"):
        cdc().fit(pictures, np.zeros(47, int))


def test_nothing_is_printed_unless_asked(pictures, capsys):
    cdc().fit(pictures)
    assert capsys.readouterr() == ("", "")
    cdc(verbose=True).fit(pictures)
    assert "epoch 1/1" in capsys.readouterr().err


def test_the_example_of_the_docstring_runs():
    assert doctest.testmod(estimator).failed == 0

"""Files as data sets, whole and damaged: mapped arrays, tables, images, lines of text."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runnel as rn
from runnel.core.errors import FileError
from runnel.data import (
    ArrayDataset,
    DataLoader,
    ImageFolder,
    TableDataset,
    TextLines,
    open_array,
    open_arrays,
    read_image,
    transforms as T,
)

ARRAYS = {
    "numbers": np.arange(24, dtype=np.int16).reshape(2, 3, 4),
    "columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "empty": np.zeros((0, 5), np.float32),
    "one": np.array(7, np.uint8),
}


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_of_npz_files(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "a.npz", **ARRAYS)
    check(open_arrays(tmp_path / "a.npz"))


def check(actual: dict[str, np.ndarray]) -> None:
    assert set(actual) == set(ARRAYS)
    for name, array in actual.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype and array.shape == ARRAYS[name].shape


def test_arrays_of_npy_and_safetensors_files(tmp_path: Path) -> None:
    for array in ARRAYS.values():
        np.save(tmp_path / "a.npy", array)
        np.testing.assert_array_equal(open_array(tmp_path / "a.npy"), array)
    mapped = open_array(tmp_path / "a.npy")
    assert not mapped.flags.writeable or mapped.size == 0
    rn.save_file({name: np.asarray(array, order="C") for name, array in ARRAYS.items()}, tmp_path / "a.safetensors")
    check(open_arrays(tmp_path / "a.safetensors"))


def test_files_that_are_cut_are_reported(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", ARRAYS["numbers"])
    np.savez(tmp_path / "a.npz", **ARRAYS)
    rn.save_file({"numbers": ARRAYS["numbers"]}, tmp_path / "a.safetensors")
    for name, opened in (("a.npy", open_array), ("a.npz", open_arrays), ("a.safetensors", open_arrays)):
        whole = (tmp_path / name).read_bytes()
        for length in range(0, len(whole), max(1, len(whole) // 40)):
            (tmp_path / name).write_bytes(whole[:length])
            with pytest.raises(FileError, match=f"{name}' is no"):
                opened(tmp_path / name)
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    with pytest.raises(FileError, match="holds Python objects"):
        open_array(tmp_path / "objects.npy")
    with pytest.raises(FileNotFoundError):
        open_array(tmp_path / "none.npy")


@pytest.mark.suite
def test_processes_read_mapped_arrays(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(300).reshape(100, 3))
    data = ArrayDataset(open_array(tmp_path / "x.npy"), np.arange(100))
    batches = [x for x, _ in DataLoader(data, 10, num_workers=2)]
    np.testing.assert_array_equal(np.concatenate([x.numpy() for x in batches]), np.arange(300).reshape(100, 3))


TEXT = "size,price,name,sold\n1,2.5,one,true\n2,,two,false\n3,0.25,three,true\n"


def tables(folder: Path) -> list[Path]:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, feather, parquet

    (folder / "t.csv").write_text(TEXT)
    (folder / "t.tsv").write_text(TEXT.replace(",", "\t"))
    table = csv.read_csv(folder / "t.csv")
    parquet.write_table(table, folder / "t.parquet")
    feather.write_feather(table, folder / "t.arrow", compression="uncompressed")
    assert arrow is not None
    return [folder / f"t.{ending}" for ending in ("csv", "tsv", "parquet", "arrow")]


def test_rows_of_tables(tmp_path: Path) -> None:
    for path in tables(tmp_path):
        data = TableDataset(path)
        assert len(data) == 3 and data["size"].tolist() == [1, 2, 3] and data["sold"].dtype == np.bool_
        assert data[0] == {"size": 1, "price": 2.5, "name": "one", "sold": True} and np.isnan(data[1]["price"])
        (batch,) = DataLoader(data, 3)
        assert batch["size"].dtype is rn.int64 and batch["name"] == ["one", "two", "three"]
        assert list(TableDataset(path, ["name", "size"])[2].items()) == [("name", "three"), ("size", 3)]


def test_texts_in_other_encodings_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "values.csv").write_bytes("a,b\n1,tea\n2,café\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"no UTF-8 text in row 1 of column 'b': b'caf\\xe9'"):
        TableDataset(tmp_path / "values.csv")
    (tmp_path / "names.csv").write_bytes("a,café\n1,2\n".encode("latin-1"))
    with pytest.raises(FileError, match="names of the columns"):
        TableDataset(tmp_path / "names.csv")
    (tmp_path / "right.csv").write_bytes("a,café\n1,thé\n".encode())
    assert TableDataset(tmp_path / "right.csv")[0] == {"a": 1, "café": "thé"}
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*none\.csv'"):
        TableDataset(tmp_path / "none.csv")


def test_columns_of_lists_are_ragged(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"words": [[1, 2], [3], []], "kind": arrow.array(["a", "b", "a"]).dictionary_encode()})
    parquet.write_table(table, tmp_path / "t.parquet")
    data = TableDataset(tmp_path / "t.parquet")
    assert [data[i]["words"].tolist() for i in range(3)] == [[1, 2], [3], []] and data[2]["kind"] == "a"
    (batch,) = DataLoader(data, 3, collate_fn=rn.data.pack_collate)
    assert batch["words"].offsets.tolist() == [0, 2, 3, 3] and batch["kind"] == ["a", "b", "a"]


def test_tables_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    csv, _, parquet, arrow = tables(tmp_path)
    with pytest.raises(FileError, match="no column cost; it has size, price, name, sold"):
        TableDataset(csv, ["size", "cost"])
    with pytest.raises(FileError, match="no known ending"):
        TableDataset(tmp_path / "table")
    with pytest.raises(KeyError, match="no column 'cost'; there are size, price, name, sold"):
        TableDataset(csv)["cost"]
    csv.write_text("size,size\n1,2\n")
    with pytest.raises(FileError, match="several columns called size"):
        TableDataset(csv)
    csv.write_text(TEXT + "4,1\n")
    with pytest.raises(FileError, match=r"cannot be read as csv: .*Expected 4 columns, got 2"):
        TableDataset(csv)
    csv.write_text(TEXT.replace("2,,two", ",,two"))
    with pytest.raises(FileError, match="no value in row 1 of column 'size'"):
        TableDataset(csv)
    for path, kind in ((parquet, "parquet"), (arrow, "arrow")):
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(FileError, match=f"cannot be read as {kind}"):
            TableDataset(path)


def image_folder(folder: Path) -> np.ndarray:
    image = pytest.importorskip("PIL.Image")
    pixels = np.random.default_rng(0).integers(0, 256, (6, 5, 4, 3), dtype=np.uint8)
    for number, each in enumerate(pixels):
        place = folder / ("cats", "dogs")[number % 2] / "more"
        place.mkdir(parents=True, exist_ok=True)
        image.fromarray(each).save(place / f"{number}.png")
    (folder / "cats" / "notes.txt").write_text("no image")
    return pixels.transpose(0, 3, 1, 2)


def test_folders_of_images(tmp_path: Path) -> None:
    pixels = image_folder(tmp_path)
    data = ImageFolder(tmp_path, transform=T.ToTensor())
    assert data.classes == ["cats", "dogs"] and data.targets == [0, 0, 0, 1, 1, 1] and len(data) == 6
    np.testing.assert_array_equal(data[3][0].numpy(), pixels[1] / np.float32(255))
    ((images, numbers),) = DataLoader(data, 6)
    assert images.shape == (6, 3, 5, 4) and numbers.tolist() == data.targets
    gray = read_image(data.samples[0][0], "L")
    assert gray.shape == (1, 5, 4) and gray.dtype == np.uint8


def test_arrow_file_with_wrong_offsets(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.feather")
    path = tmp_path / "t.arrow"
    table = pyarrow.table({"name": ["one", "two", "three"]})
    pyarrow.feather.write_feather(table, path, compression="uncompressed")
    offsets = np.array([0, 3, 6, 11], np.int32).tobytes()
    content = path.read_bytes()
    assert content.count(offsets) == 1
    path.write_bytes(content.replace(offsets, np.array([0, 1 << 30, 1 << 30, 11], np.int32).tobytes()))
    with pytest.raises(FileError, match="cannot be read as arrow"):
        TableDataset(path)


def test_an_image_of_too_many_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image = pytest.importorskip("PIL.Image")
    Image.new("1", (100, 100)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 9_999)
    with pytest.raises(FileError, match="claims 100 × 100 pixels; set"):
        read_image(tmp_path / "a.png")


def test_damaged_images_are_reported(tmp_path: Path) -> None:
    image_folder(tmp_path)
    path = Path(ImageFolder(tmp_path).samples[0][0])
    whole = path.read_bytes()
    for content in (whole[:-40], whole[:10], b"", b"no image"):
        path.write_bytes(content)
        with pytest.raises(FileError, match=f"{path.name}' is no image that can be read"):
            ImageFolder(tmp_path)[0]
    path.unlink()
    with pytest.raises(FileError, match="no folders"):
        ImageFolder(path.parent)
    (tmp_path / "birds").mkdir()
    with pytest.raises(FileError, match=r"class 'birds' of .* has no images"):
        ImageFolder(tmp_path)


def test_lines_of_files(tmp_path: Path) -> None:
    contents = ["one\nzwei ü\r\n\nlast", "", "next\n"]
    paths = [tmp_path / f"{i}.txt" for i in range(3)]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content.encode())
    lines = TextLines(*paths)
    assert list(map(lines.__getitem__, range(len(lines)))) == ["one", "zwei ü", "", "last", "next"]
    again = pickle.loads(pickle.dumps(lines))
    assert again[-1] == "next" and list(DataLoader(again, 5)) == [["one", "zwei ü", "", "last", "next"]]
    with pytest.raises(IndexError, match="line 5 of 5"):
        lines[5]
    paths[0].write_bytes(b"good\n\xff\xfe\n")
    with pytest.raises(FileError, match=r"line 2 of .*0.txt' is no UTF-8"):
        TextLines(paths[0])[1]

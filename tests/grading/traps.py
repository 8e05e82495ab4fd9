# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Traps
# A small assignment without torch, whose kernels start quickly: it shows how grading treats bad input.
# ruff: noqa: B018, E501

# %% nbgrader={"grade": false, "grade_id": "setup", "locked": true, "schema_version": 3, "solution": false}
from IPython.display import display


class Points(float):
    def __repr__(self):
        return f"{float(self):g}"


def test(function, cases, points):
    """A stand-in for `check`: same card, same result."""
    try:
        wrong = [case for case in cases if function(case) != cases[case]]
        word = "failed" if wrong else "passed"
        message = f"wrong for {wrong[0]}" if wrong else "right in all cases"
    except NotImplementedError:
        word, message = "not attempted", "there is no solution here yet"
    except Exception as error:
        word, message = "error", f"{type(error).__name__}: {error}"
    return card(word, points if word == "passed" else 0, points, message)


def card(word, points, most, message):
    data = {"outcome": word, "points": points, "max_points": most, "message": message}
    text = f"{word}: {message}"
    bundle = {"text/plain": text, "text/html": text, "application/vnd.autograder.outcome+json": data}
    display(bundle, raw=True)
    return Points(points)


# %% nbgrader={"grade": false, "grade_id": "double", "locked": false, "schema_version": 3, "solution": true}
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "double_check", "locked": true, "points": 1, "schema_version": 3, "solution": false}
test(double, {1: 2, 2: 4}, points=1)

# %% nbgrader={"grade": true, "grade_id": "double_hidden", "locked": true, "points": 2, "schema_version": 3, "solution": false}
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
secret_cases = {987654321: 1975308642}
test(double, secret_cases, points=2)
### END HIDDEN TESTS


# %% nbgrader={"grade": false, "grade_id": "square", "locked": false, "schema_version": 3, "solution": true}
def square(x):
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "square_check", "locked": true, "points": 1, "schema_version": 3, "solution": false}
test(square, {1: 1, 3: 9}, points=1)

# %% nbgrader={"grade": true, "grade_id": "square_hidden", "locked": true, "points": 2, "schema_version": 3, "solution": false}
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
test(square, {123456789: 15241578750190521}, points=2)
### END HIDDEN TESTS


# %% nbgrader={"grade": false, "grade_id": "negate", "locked": false, "schema_version": 3, "solution": true}
def negate(x):
    ### BEGIN SOLUTION
    return -x
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "negate_check", "locked": true, "points": 1, "schema_version": 3, "solution": false}
test(negate, {1: -1, 3: -3}, points=1)

# %% nbgrader={"grade": true, "grade_id": "negate_hidden", "locked": true, "points": 2, "schema_version": 3, "solution": false}
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
test(negate, {192837465: -192837465}, points=2)
### END HIDDEN TESTS

# %% [markdown]
# Test cells whose result says nothing, or nonsense.

# %% nbgrader={"grade": true, "grade_id": "odd_silent", "locked": true, "points": 1, "schema_version": 3, "solution": false}
assert True

# %% nbgrader={"grade": true, "grade_id": "odd_text", "locked": true, "points": 1, "schema_version": 3, "solution": false}
"full marks"

# %% nbgrader={"grade": true, "grade_id": "odd_over", "locked": true, "points": 1, "schema_version": 3, "solution": false}
7.5

# %% nbgrader={"grade": true, "grade_id": "odd_negative", "locked": true, "points": 1, "schema_version": 3, "solution": false}
-1

# %% nbgrader={"grade": true, "grade_id": "odd_nan", "locked": true, "points": 1, "schema_version": 3, "solution": false}
float("nan")

# %% nbgrader={"grade": true, "grade_id": "odd_card", "locked": true, "points": 1, "schema_version": 3, "solution": false}
card("failed", 0, 1, "wrong")
1

# %% nbgrader={"grade": true, "grade_id": "odd_undecided", "locked": true, "points": 1, "schema_version": 3, "solution": false}
card("undecided", 0.5, 1, "too noisy")

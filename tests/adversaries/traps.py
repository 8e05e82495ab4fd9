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

# %% id="setup" role="given"
from IPython.display import display


class Points(float):
    def __repr__(self):
        return f"{float(self):g}"


def test(function, cases, points):
    """In place of `check`: same card, same result."""
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


# %% id="double" role="answer"
def double(x):
    ### BEGIN SOLUTION
    return 2 * x
    ### END SOLUTION


# %% id="double_check" role="test" points=1
test(double, {1: 2, 2: 4}, points=1)

# %% id="double_hidden" role="test" points=2
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
secret_cases = {987654321: 1975308642}
test(double, secret_cases, points=2)
### END HIDDEN TESTS


# %% id="square" role="answer"
def square(x):
    ### BEGIN SOLUTION
    return x * x
    ### END SOLUTION


# %% id="square_check" role="test" points=1
test(square, {1: 1, 3: 9}, points=1)

# %% id="square_hidden" role="test" points=2
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
test(square, {123456789: 15241578750190521}, points=2)
### END HIDDEN TESTS


# %% id="negate" role="answer"
def negate(x):
    ### BEGIN SOLUTION
    return -x
    ### END SOLUTION


# %% id="negate_check" role="test" points=1
test(negate, {1: -1, 3: -3}, points=1)

# %% id="negate_hidden" role="test" points=2
# A hidden test follows: other numbers.
### BEGIN HIDDEN TESTS
test(negate, {192837465: -192837465}, points=2)
### END HIDDEN TESTS

# %% [markdown]
# Test cells whose result says nothing, or nonsense.

# %% id="odd_silent" role="test" points=1
assert True

# %% id="odd_text" role="test" points=1
"full marks"

# %% id="odd_over" role="test" points=1
7.5

# %% id="odd_negative" role="test" points=1
-1

# %% id="odd_nan" role="test" points=1
float("nan")

# %% id="odd_card" role="test" points=1
card("failed", 0, 1, "wrong")
1

# %% id="odd_undecided" role="test" points=1
card("undecided", 0.5, 1, "too noisy")

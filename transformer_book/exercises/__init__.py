"""Graders for the exercises: each `check_…(answer)` says what to do next.

There is one module for each chapter, and the chapter imports from it. A grader returns
a `Feedback`, which a notebook shows as a sentence: the exercise is not attempted yet,
what the mistake is, or why the answer is right. `grading` says how to write one.
"""
